#include "conformance/vectors/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

const CheckpointTensor& find(const SafetensorsFile& file, const std::string& name) {
  const CheckpointTensor* tensor = file.find(name);
  if (!tensor)
    throw ModelError(file.path().string(), fmt::format("has no tensor `{}`", printable(name)), "");
  return *tensor;
}

void check_shape(const SafetensorsFile& file, const std::string& name,
                 const std::vector<uint64_t>& found, const std::vector<uint64_t>& wanted) {
  if (found != wanted) {
    throw ModelError(
        file.path().string(),
        fmt::format("tensor `{}` has not the shape that the .json gives", printable(name)),
        "the two files belong together");
  }
}

}  // namespace

double Recorded::largest() const {
  double most = 0;
  for (double value : values) most = std::max(most, std::fabs(value));
  return most;
}

uint64_t recorded_rows(const SafetensorsFile& file, const std::string& name) {
  const CheckpointTensor& tensor = find(file, name);
  if (tensor.shape.empty())
    throw ModelError(file.path().string(),
                     fmt::format("tensor `{}` is a single number", printable(name)), "");
  return tensor.shape[0];
}

Recorded read_recorded(const SafetensorsFile& file, const std::string& name) {
  const CheckpointTensor& tensor = find(file, name);
  Recorded result{tensor.shape, std::vector<double>(tensor.elements()),
                  tensor.type == CheckpointType::kF32};
  if (!result.narrow && tensor.type != CheckpointType::kF64) {
    throw ModelError(file.path().string(),
                     fmt::format("tensor `{}` is neither F32 nor F64", printable(name)), "");
  }
  for (size_t i = 0; i < result.values.size(); ++i) {
    if (result.narrow) {
      float value;
      std::memcpy(&value, tensor.bytes.data() + 4 * i, 4);
      result.values[i] = value;
    } else {
      std::memcpy(&result.values[i], tensor.bytes.data() + 8 * i, 8);
    }
  }
  return result;
}

Recorded read_recorded(const SafetensorsFile& file, const std::string& name,
                       const std::vector<uint64_t>& shape) {
  Recorded recorded = read_recorded(file, name);
  check_shape(file, name, recorded.shape, shape);
  return recorded;
}

std::vector<uint32_t> read_numbers(const SafetensorsFile& file, const std::string& name,
                                   const std::vector<uint64_t>& shape, uint64_t limit) {
  const CheckpointTensor& tensor = find(file, name);
  if (tensor.type != CheckpointType::kI64)
    throw ModelError(file.path().string(), fmt::format("tensor `{}` is not I64", printable(name)),
                     "");
  check_shape(file, name, tensor.shape, shape);
  std::vector<uint32_t> numbers;
  for (size_t i = 0; i < tensor.elements(); ++i) {
    int64_t value;
    std::memcpy(&value, tensor.bytes.data() + 8 * i, 8);
    if (value < 0 || static_cast<uint64_t>(value) >= limit) {
      throw ModelError(
          file.path().string(),
          fmt::format("tensor `{}` holds {}, which is not below {}", printable(name), value, limit),
          "");
    }
    numbers.push_back(static_cast<uint32_t>(value));
  }
  return numbers;
}

uint64_t extent(const Json& entry, const char* key, uint64_t least) {
  const int64_t value = entry.at(key).get<int64_t>();
  if (value < static_cast<int64_t>(least) || value > 1 << 20) {
    throw Json::other_error::create(0, fmt::format("`{}` is {}", key, value), &entry);
  }
  return static_cast<uint64_t>(value);
}

uint64_t extent_or(const Json& entry, const char* key, const char* other, uint64_t least) {
  return extent(entry, entry.contains(key) ? key : other, least);
}

std::string name_of(const Json& entry) { return entry.at("name").get<std::string>(); }

Json member(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_object() ? *found : Json::object();
}

std::string text(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

CaseInput recorded_input(Shape shape, std::vector<double> values, DataType type) {
  return {shape, type,
          [values = std::move(values)](std::vector<double>& to, std::mt19937&) { to = values; }};
}

}  // namespace mulciber::conformance
