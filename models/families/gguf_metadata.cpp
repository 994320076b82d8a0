#include "models/families/gguf_metadata.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoints/tensor_values.h"
#include "mulciber/error.h"

namespace mulciber {

GgufMetadata::GgufMetadata(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), file_(*checkpoint.gguf()), architecture_(file_.architecture()) {}

void GgufMetadata::fail(const std::string& full_key, const std::string& problem) const {
  throw ModelError(file_.path().string(), "metadata '" + full_key + "' " + problem,
                   "the file does not describe a model that can be run");
}

double GgufMetadata::number(const std::string& key, double fallback) const {
  const GgufValue* value = find(key);
  if (!value) return fallback;
  if (!value->is_number())
    fail(full(key), "is " + value->shown().dump() + "; a number is expected");
  return value->number();
}

double GgufMetadata::head_size() const {
  const double heads = number("attention.head_count", 0);
  return number("attention.key_length", heads > 0 ? number("embedding_length", 0) / heads : 0);
}

std::vector<double> GgufMetadata::factors(const char* tensor, uint64_t count) const {
  const CheckpointTensor* found = checkpoint_.find(tensor);
  if (!found) return {};
  std::vector<float> values;
  if (found->elements() == count && has_float_values(found->type))
    values = read_floats(*found, 0, count);
  if (values.empty() || std::ranges::any_of(values, [](float v) { return !(v > 0); }))
    throw ModelError(checkpoint_.path().string(),
                     fmt::format("tensor '{}' does not hold a factor above 0 for each of {} pairs "
                                 "of a head",
                                 tensor, count),
                     "");
  return {values.begin(), values.end()};
}

}  // namespace mulciber
