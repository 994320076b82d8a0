#include "models/core/rope_config.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mulciber {
namespace {

constexpr double kHuge = 1e12;

constexpr const char* kShare = "partial_rotary_factor";

/// Number of a head's elements that rotate.
uint32_t rotated_of(const ConfigReader& config, const RopeDefaults& defaults) {
  const double share = config.number_or(kShare, defaults.share, 0, 1);
  // transformers truncates; 1e-6 compensates a computed share that is rounded down.
  const auto rotated = static_cast<uint32_t>(defaults.head_size * share + 1e-6);
  if (rotated == 0 || rotated % 2 != 0)
    config.fail(kShare, fmt::format("is {}: of {} elements of a head {} rotate, which are no pairs",
                                    share, defaults.head_size, rotated));
  return rotated;
}

double required(const ConfigReader& parameters, const char* key, double least) {
  parameters.value(key);  // throws, naming the key, when it is missing
  return parameters.number_or(key, 0, least, kHuge);
}

std::optional<double> optional(const ConfigReader& parameters, const char* key) {
  return parameters.has(key) ? std::optional(parameters.number_or(key, 0, 0, kHuge)) : std::nullopt;
}

std::vector<double> factors(const ConfigReader& parameters, const char* key, size_t count) {
  const Json& list = parameters.list(key);
  std::vector<double> values;
  for (const Json& value : list) {
    if (!value.is_number() || !(value.get<double>() > 0) || values.size() == count) break;
    values.push_back(value.get<double>());
  }
  if (values.size() != count || list.size() != count)
    parameters.fail(key, fmt::format("does not list a factor above 0 for each of {} pairs", count));
  return values;
}

/// Context before its extension. The whole configuration's value takes precedence, as in
/// transformers.
double original_positions(const ConfigReader& parameters, const RopeDefaults& defaults) {
  return defaults.original_positions.value_or(
      parameters.number_or("original_max_position_embeddings", defaults.context, 1, kHuge));
}

/// Reads short factors, and long ones for sequences longer than the original context.
void read_long_rope(const ConfigReader& parameters, const RopeDefaults& defaults,
                    RopeConfig& rope) {
  RopeScaling& scaling = rope.scaling;
  scaling.kind = RopeScalingKind::kLongRope;
  // If the whole configuration gives the original context, the factor follows from it.
  if (defaults.original_positions) {
    scaling.original_max_position_embeddings = *defaults.original_positions;
    scaling.factor = defaults.context / *defaults.original_positions;
  } else {
    scaling.original_max_position_embeddings =
        parameters.number_or("original_max_position_embeddings", defaults.context, 2, kHuge);
    scaling.factor = parameters.number_or(
        "factor", defaults.context / scaling.original_max_position_embeddings, 1e-6, kHuge);
  }
  scaling.attention_factor = optional(parameters, "attention_factor");
  scaling.frequency_factors = factors(parameters, "short_factor", rope.rotated / 2);
  rope.long_scaling = scaling;
  rope.long_scaling->frequency_factors = factors(parameters, "long_factor", rope.rotated / 2);
}

}  // namespace

RopeConfig read_rope(const ConfigReader& parameters, const RopeDefaults& defaults) {
  RopeConfig rope;
  rope.rotated = rotated_of(parameters, defaults);
  rope.base = parameters.number_or("rope_theta", defaults.base, 1.001, 1e30);
  RopeScaling& scaling = rope.scaling;
  const char* key = parameters.has("rope_type") ? "rope_type" : "type";
  const std::string type = parameters.text_or(key, "default");
  // Dynamic scaling changes the base only beyond max_position_embeddings, which no context exceeds.
  if (type == "default" || type == "dynamic") return rope;
  if (type == "longrope" || type == "su") {  // "su" is LongRoPE's first name
    read_long_rope(parameters, defaults, rope);
    return rope;
  }
  if (type != "linear" && type != "llama3" && type != "yarn")
    parameters.fail(key,
                    "is '" + printable(type) +
                        "'; default, dynamic, linear, llama3, yarn and longrope are supported");
  if (type == "yarn")
    scaling.factor = parameters.number_or(
        "factor", defaults.context / original_positions(parameters, defaults), 1e-6, kHuge);
  else
    scaling.factor = required(parameters, "factor", 1e-6);
  if (type == "linear") {
    scaling.kind = RopeScalingKind::kLinear;
  } else if (type == "llama3") {
    scaling.kind = RopeScalingKind::kLlama3;
    scaling.original_max_position_embeddings = original_positions(parameters, defaults);
    scaling.low_freq_factor = required(parameters, "low_freq_factor", 1e-6);
    scaling.high_freq_factor = required(parameters, "high_freq_factor", 1e-6);
    if (scaling.high_freq_factor <= scaling.low_freq_factor)
      parameters.fail("high_freq_factor", "is not above low_freq_factor");
  } else {
    scaling.kind = RopeScalingKind::kYarn;
    scaling.original_max_position_embeddings = original_positions(parameters, defaults);
    scaling.beta_fast = parameters.number_or("beta_fast", 32, 1e-6, kHuge);
    scaling.beta_slow = parameters.number_or("beta_slow", 1, 1e-6, kHuge);
    scaling.truncate = parameters.boolean_or("truncate", true);
    scaling.attention_factor = optional(parameters, "attention_factor");
    scaling.mscale = optional(parameters, "mscale");
    scaling.mscale_all_dim = optional(parameters, "mscale_all_dim");
  }
  return rope;
}

RopeConfig read_rope_of(const ConfigReader& config, const char* kind,
                        const RopeDefaults& defaults) {
  RopeDefaults given = defaults;
  given.share = config.number_or(kShare, defaults.share, 0, 1);
  // Base of rotations whose own object sets none.
  given.base = config.number_or("rope_theta", defaults.base, 1.001, 1e30);
  constexpr const char* kOriginal = "original_max_position_embeddings";
  if (config.has(kOriginal)) given.original_positions = config.number_or(kOriginal, 0, 2, kHuge);
  if (config.has("rope_parameters")) {
    const ConfigReader all = config.object("rope_parameters");
    return kind && all.has(kind) ? read_rope(all.object(kind), given) : read_rope(all, given);
  }
  if (config.has("rope_scaling")) return read_rope(config.object("rope_scaling"), given);
  const Json nothing = Json::object();
  return read_rope(ConfigReader(nothing, config.where(), config.remedy()), given);
}

}  // namespace mulciber
