#include "models/loading/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/tensor_values.h"
#include "models/generation/language_model.h"
#include "models/speech/speech_model.h"
#include "models/translation/translation_model.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr double kLeastTolerance = 1e-4;
constexpr double kRoundingAllowance = 20;  // factor of the error of 32-bit arithmetic on a CPU
constexpr double kScoreTolerance = 1e-3;
constexpr double kHalfTolerance = 5e-2;

struct Case {
  std::string name, kind;
  std::vector<std::string> inputs, outputs;
  Json params = Json::object();
  Json f32_max_abs_diff = Json::object();
};

std::string text_of(const Json& object, const char* key, const std::string& where) {
  if (!object.contains(key) || !object[key].is_string())
    throw ModelError(where, fmt::format("a case has no `{}`", key), "");
  return object[key].get<std::string>();
}

std::vector<std::string> names_of(const Json& object, const char* key, const std::string& where) {
  std::vector<std::string> names;
  if (!object.contains(key) || !object[key].is_array())
    throw ModelError(where, fmt::format("a case has no list `{}`", key), "");
  for (const Json& name : object[key]) {
    if (!name.is_string()) throw ModelError(where, fmt::format("`{}` holds no names", key), "");
    names.push_back(name.get<std::string>());
  }
  return names;
}

std::vector<Case> read_cases(const std::filesystem::path& path) {
  const Json document = read_json(path);
  const std::string where = path.string();
  if (!document.is_object() || !document.contains("cases") || !document["cases"].is_array())
    throw ModelError(where, "has no list `cases`", "");
  std::vector<Case> cases;
  for (const Json& entry : document["cases"]) {
    if (!entry.is_object()) throw ModelError(where, "a case is no object", "");
    Case c = {.name = text_of(entry, "name", where),
              .kind = text_of(entry, "kind", where),
              .inputs = names_of(entry, "inputs", where),
              .outputs = names_of(entry, "outputs", where)};
    if (entry.contains("params") && entry["params"].is_object()) c.params = entry["params"];
    if (entry.contains("f32_max_abs_diff") && entry["f32_max_abs_diff"].is_object())
      c.f32_max_abs_diff = entry["f32_max_abs_diff"];
    cases.push_back(std::move(c));
  }
  return cases;
}

template <typename T>
std::vector<double> widened(std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

NamedArray read_array(const SafetensorsFile& file, const std::string& name) {
  const CheckpointTensor* tensor = file.find(name);
  if (!tensor)
    throw ModelError(file.path().string(), fmt::format("has no tensor `{}`", printable(name)),
                     "the .json beside it lists it: the two files belong together");
  NamedArray array = {tensor->shape, {}};
  switch (tensor->type) {
    case CheckpointType::kF64: array.values = widened<double>(tensor->bytes); break;
    case CheckpointType::kF32: array.values = widened<float>(tensor->bytes); break;
    case CheckpointType::kI64: array.values = widened<int64_t>(tensor->bytes); break;
    case CheckpointType::kI32: array.values = widened<int32_t>(tensor->bytes); break;
    case CheckpointType::kU8: array.values = widened<uint8_t>(tensor->bytes); break;
    default: {
      const std::vector<float> values = read_floats(*tensor, 0, tensor->elements());
      array.values.assign(values.begin(), values.end());
    }
  }
  return array;
}

bool is_ids(const std::string& output) { return output == "output_ids"; }
bool is_score(const std::string& output) { return output == "sequences_scores"; }

double tolerance_of(const Case& c, const std::string& output, const Model& model,
                    const VerifyOptions& options) {
  if (is_ids(output)) return 0;
  if (options.tolerance) return *options.tolerance;
  double tolerance = is_score(output) ? kScoreTolerance : kLeastTolerance;
  if (c.f32_max_abs_diff.contains(output) && c.f32_max_abs_diff[output].is_number())
    tolerance = std::max(tolerance, kRoundingAllowance * c.f32_max_abs_diff[output].get<double>());
  return model.half_precision() ? std::max(tolerance, kHalfTolerance) : tolerance;
}

/// Whether each element of `expected` belongs to padding of an encoder's input, which is not
/// compared: a sliding window may leave it without keys. Empty: none does.
std::vector<bool> padding_of(const std::string& output, const NamedArrays& inputs,
                             const NamedArray& expected) {
  // The output's name determines the dimensions of batch and position, as in transformers.
  size_t batch = 0, position = 1;
  if (output.ends_with("hidden_states")) batch = 1, position = 2;
  if (output.ends_with("attentions")) batch = 1, position = 3;
  const auto found = inputs.find("attention_mask");
  const std::vector<uint64_t>& shape = expected.shape;
  if (found == inputs.end() || found->second.shape.size() != 2 || shape.size() <= position)
    return {};
  const NamedArray& mask = found->second;
  if (shape[batch] != mask.shape[0] || shape[position] != mask.shape[1]) return {};
  std::vector<bool> padding(expected.values.size());
  for (size_t i = 0; i < padding.size(); ++i) {
    size_t rest = i, row = 0, token = 0;
    for (size_t dimension = shape.size(); dimension-- > 0;) {
      if (dimension == batch) row = rest % shape[dimension];
      if (dimension == position) token = rest % shape[dimension];
      rest /= shape[dimension];
    }
    padding[i] = mask.values[row * mask.shape[1] + token] == 0;
  }
  return padding;
}

/// Whether each row of (batch, position, ...) is masked padding on the left, which is not compared.
/// Padding on the right changes no row, so all are compared. Empty: all are compared.
std::vector<bool> hidden_rows(const NamedArrays& inputs, const NamedArray& expected) {
  const auto found = inputs.find("attention_mask");
  if (found == inputs.end() || found->second.shape.size() != 2) return {};
  const NamedArray& mask = found->second;
  if (expected.shape.size() < 3 || expected.shape[0] != mask.shape[0] ||
      expected.shape[1] != mask.shape[1])
    return {};
  for (uint64_t row = 0; row < mask.shape[0]; ++row) {
    if (mask.values[row * mask.shape[1]] == 0) return padding_of("", inputs, expected);
  }
  return {};
}

/// Whether each element is excluded from the comparison. Empty: none is.
std::vector<bool> left_out(Model& model, const std::string& output, const NamedArrays& inputs,
                           const NamedArray& expected) {
  if (model.encodes_text() || model.sees()) return padding_of(output, inputs, expected);
  const TranslationModel* translation = model.translates();
  if (translation && !translation->padding_has_states() && output.starts_with("encoder_"))
    return padding_of(output, inputs, expected);
  return hidden_rows(inputs, expected);
}

std::string position_text(uint64_t index, const std::vector<uint64_t>& shape) {
  std::vector<uint64_t> position(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    position[i] = index % shape[i];
    index /= shape[i];
  }
  return fmt::format("[{}]", fmt::join(position, ", "));
}

/// Compares a tensor. hidden: whether each element is excluded; empty: none is.
VerifyResult compare(const NamedArray& expected, const NamedArray& found,
                     const std::vector<bool>& hidden, bool exact, double tolerance) {
  VerifyResult result;
  result.tolerance = tolerance;
  result.status = VerifyResult::Status::kFail;
  if (expected.shape != found.shape) {
    result.error = std::numeric_limits<double>::infinity();
    result.detail = fmt::format("shape ({}), expected ({})", fmt::join(found.shape, ", "),
                                fmt::join(expected.shape, ", "));
    return result;
  }
  double worst = -1;
  uint64_t worst_index = 0, different = 0, compared = 0;
  for (uint64_t i = 0; i < expected.values.size(); ++i) {
    if (!hidden.empty() && hidden[i]) continue;
    ++compared;
    double error = std::abs(expected.values[i] - found.values[i]);
    // Equal infinities have no error; any other NaN has an infinite one.
    if (std::isnan(error))
      error = expected.values[i] == found.values[i] ? 0 : std::numeric_limits<double>::infinity();
    if (error > tolerance) ++different;
    if (error > worst) {
      worst = error;
      worst_index = i;
    }
  }
  if (compared == 0) {
    result.status = VerifyResult::Status::kNotCompared;
    result.detail = "no element is left to compare";
    return result;
  }
  if (different == 0) result.status = VerifyResult::Status::kPass;
  result.error = exact ? static_cast<double>(different) : worst;
  if (worst > 0)
    result.detail =
        fmt::format("at {}: {:.9g}, expected {:.9g}", position_text(worst_index, expected.shape),
                    found.values[worst_index], expected.values[worst_index]);
  return result;
}

/// Runs the search of a case, whose settings have the keys of generation_config.json.
NamedArrays run_search(Model& model, const Case& c, const NamedArrays& inputs,
                       const std::string& where) {
  Json merged = c.params;
  if (c.params.contains("rules") && c.params["rules"].is_object()) merged.update(c.params["rules"]);
  merged.erase("rules");
  const ConfigReader reader(merged, fmt::format("{}, case {}", where, printable(c.name)));
  const GenerationConfig config =
      read_generation_config(reader, nullptr, model.extents().vocabulary);
  const int64_t n_best = reader.integer_or("num_return_sequences", 1, 1, kMaxBeams);
  if (TranslationModel* translation = model.translates())
    return translation->search(inputs, config, static_cast<uint32_t>(n_best));
  if (LanguageModel* language = model.continues_text())
    return language->search(inputs, config, static_cast<uint32_t>(n_best));
  if (SpeechModel* speech = model.hears())
    return speech->search(inputs, config, static_cast<uint32_t>(n_best));
  return {};  // other models have no search
}

}  // namespace

size_t VerifyReport::count(VerifyResult::Status status) const {
  return static_cast<size_t>(std::count_if(
      results.begin(), results.end(), [&](const auto& result) { return result.status == status; }));
}

int VerifyReport::exit_code() const {
  if (count(VerifyResult::Status::kFail) > 0) return 1;
  return count(VerifyResult::Status::kPass) > 0 ? 0 : 3;
}

VerifyReport verify(Model& model, const std::filesystem::path& expected,
                    const VerifyOptions& options) {
  const SafetensorsFile file(expected);
  std::filesystem::path list = expected;
  list.replace_extension(".json");
  const std::vector<Case> cases = read_cases(list);

  VerifyReport report;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    if (options.on_case) options.on_case(c.name, i, cases.size());
    NamedArrays inputs;
    for (const std::string& name : c.inputs) inputs[name] = read_array(file, c.name + "/" + name);

    const bool search = c.kind == "greedy" || c.kind == "beam";
    const bool known = search || c.kind == "forward";
    NamedArrays outputs;
    if (search) outputs = run_search(model, c, inputs, list.string());
    if (c.kind == "forward") outputs = model.forward(inputs, c.outputs);

    for (const std::string& name : c.outputs) {
      const NamedArray wanted = read_array(file, c.name + "/" + name);
      const double tolerance = tolerance_of(c, name, model, options);
      VerifyResult result;
      const auto found = outputs.find(name);
      if (found != outputs.end()) {
        const std::vector<bool> hidden = left_out(model, name, inputs, wanted);
        result = compare(wanted, found->second, hidden, is_ids(name), tolerance);
      } else {
        result.tolerance = tolerance;
        result.detail = known ? fmt::format("the {} family has no such output", model.family())
                              : fmt::format("no case of kind \"{}\" can be run", printable(c.kind));
      }
      result.case_name = c.name;
      result.kind = c.kind;
      result.tensor = name;
      report.results.push_back(std::move(result));
    }
  }
  return report;
}

}  // namespace mulciber
