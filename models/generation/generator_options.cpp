#include "models/generation/generator_options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "models/adapters/adapters.h"
#include "models/generation/decoder_programs.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr uint32_t kDefaultContext = 4096;

uint32_t context_of(const GeneratorOptions& options, uint32_t longest) {
  if (options.context > longest)
    throw ModelError("context",
                     fmt::format("of {} tokens is asked for, the model was made for {}",
                                 options.context, longest),
                     "");
  return options.context > 0 ? options.context : std::min(longest, kDefaultContext);
}

}  // namespace

ModelOptions model_options(const GeneratorOptions& options, uint32_t longest) {
  ModelOptions loading = model_options(options.load);
  loading.merge_adapters = options.load.merge_adapters;
  loading.cache = storage_type(options.key_values);
  loading.context = context_of(options, longest);
  loading.masked_heads = options.masked_heads;
  loading.sequences = std::max(options.sequences, 1u);
  loading.on_plan = options.on_plan;
  return loading;
}

Sampling checked(const Sampling& sampling) {
  sample_settings({.sampling = sampling});  // throws where a setting is out of range
  return sampling;
}

LogitBiases checked_biases(const LogitBiases& asked, uint32_t vocabulary) {
  const auto refuse = [](std::string problem, std::string remedy) {
    throw SettingError("logit_bias", std::move(problem), std::move(remedy));
  };
  if (asked.size() > kMostLogitBiases)
    refuse(fmt::format("has {} ids", asked.size()),
           fmt::format("give at most {}", kMostLogitBiases));
  for (const auto& [id, bias] : asked) {
    if (id >= vocabulary)
      refuse(fmt::format("has the id {}, the model's are below {}", id, vocabulary),
             "take ids of a text of this model");
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity())
      refuse(fmt::format("of the id {} is {}", id, bias), "give a number, or -infinity");
  }
  // Where an id occurs twice, the last bias counts.
  std::map<uint32_t, float> by_id;
  for (const auto& [id, bias] : asked) by_id[id] = bias;
  return {by_id.begin(), by_id.end()};
}

std::vector<uint32_t> end_ids(const Architecture& architecture, const Tokenizer& tokenizer) {
  const std::vector<int32_t>& eos = architecture.generation().eos;
  std::vector<uint32_t> ids(eos.begin(), eos.end());
  if (ids.empty() && tokenizer.special().eos)
    ids.push_back(static_cast<uint32_t>(*tokenizer.special().eos));
  for (const char* piece : architecture.end_pieces()) {
    const auto id = tokenizer.id(piece);
    if (id && tokenizer.is_special(*id)) ids.push_back(static_cast<uint32_t>(*id));
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.size() > kMostStops) ids.resize(kMostStops);
  return ids;
}

}  // namespace mulciber
