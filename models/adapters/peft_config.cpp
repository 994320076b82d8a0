#include "models/adapters/peft_config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include <fmt/format.h>

#include "checkpoints/config_reader.h"
#include "models/adapters/low_rank_adapter.h"
#include "mulciber/error.h"
#include "text/tokenizers/regex.h"

namespace mulciber {
namespace {

constexpr const char* kRemedy =
    "merge the adapter into its model with PEFT (merge_and_unload), or take another one";
constexpr double kLargestAlpha = 1e6;

/// Keys that are refused unless they are false, null, empty or `none`: they mean more than A and B.
constexpr std::pair<const char*, const char*> kRefused[] = {
    {"use_dora", "asks for DoRA"},
    {"use_qalora", "asks for QALoRA"},
    {"lora_bias", "asks for biases of B"},
    {"bias", "asks for biases"},
    {"modules_to_save", "names whole modules"},
    {"layer_replication", "asks for layers that are used again"},
    {"trainable_token_indices", "names tokens that were trained"},
    {"alora_invocation_tokens", "asks for an adapter that begins at certain tokens"}};

/// Initializations that also change the base weights, so that A and B fit only the changed weights.
/// PEFT writes another value after it has converted such an adapter.
constexpr std::string_view kChangingBeginnings[] = {"pissa", "olora", "corda", "loftq"};

/// Parameters of experts, in PEFT's order; other modules have one, the weight. PEFT omits the
/// module's name where it can.
constexpr const char *kOfExperts[] = {"gate_up_proj", "down_proj"}, *kOfOthers[] = {"weight"};
constexpr std::string_view kExperts = "experts", kWrapped = ".base_layer";

bool says_nothing(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_string()) return value == "none";
  return value.is_null() || ((value.is_array() || value.is_object()) && value.empty());
}

bool matches(const std::string& pattern, const std::string& module, const std::string& where) {
  try {
    return !Regex("^(?:" + pattern + ")\\z", where).find_all(module).empty();
  } catch (const ModelError& error) {
    throw ModelError(where, error.problem(), kRemedy);
  }
}

/// Finds a module's value in rank_pattern or alpha_pattern, by PEFT's rules.
const double* value_for(const std::vector<std::pair<std::string, double>>& patterns,
                        const std::string& module, const std::string& where) {
  for (const auto& [pattern, value] : patterns)
    if (matches("(?:.*\\.)?(?:" + pattern + ")", module, where)) return &value;
  return nullptr;
}

std::vector<std::pair<std::string, double>> patterns(const ConfigReader& config, const char* key,
                                                     double least, double most) {
  std::vector<std::pair<std::string, double>> read;
  if (!config.has(key)) return read;
  const ConfigReader object = config.object(key);
  for (const auto& [pattern, value] : object.json().items()) {
    if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most))
      config.fail(key, fmt::format("has no number from {} to {} for '{}'", least, most,
                                   printable(pattern)));
    read.emplace_back(pattern, value.get<double>());
  }
  return read;
}

}  // namespace

uint32_t PeftConfig::rank_of(const std::string& module) const {
  const double* own = value_for(ranks, module, where);
  return own ? static_cast<uint32_t>(*own) : rank;
}

double PeftConfig::factor_of(const std::string& module, uint32_t of_rank) const {
  const double* own = value_for(alphas, module, where);
  const double size = of_rank;
  return (own ? *own : alpha) / (root ? std::sqrt(size) : size);
}

bool PeftConfig::targets_module(const std::string& module) const {
  if (!target_pattern.empty()) return matches(target_pattern, module, where);
  if (targets.empty()) return true;
  return std::ranges::any_of(targets, [&](const std::string& target) {
    return module == target || module.ends_with("." + target);
  });
}

std::optional<std::string> PeftConfig::parameter_of(const std::string& module) const {
  std::string own = module;
  size_t behind = 0;
  for (; own.ends_with(kWrapped); ++behind) own.erase(own.size() - kWrapped.size());
  std::vector<std::string> adapted;
  const bool experts = own == kExperts || own.ends_with("." + std::string(kExperts));
  for (const char* parameter : experts ? std::span<const char* const>(kOfExperts) : kOfOthers) {
    const std::string name = own + "." + parameter;
    if (std::ranges::any_of(parameters, [&](const std::string& target) {
          return name == target || name.ends_with("." + target);
        }))
      adapted.push_back(name);
  }
  if (behind >= adapted.size()) return std::nullopt;
  return adapted[adapted.size() - 1 - behind];
}

PeftConfig read_peft_config(const ModelFile& file) {
  const Json json = read_json(file, {.bytes = std::size_t{16} << 20});
  PeftConfig result;
  result.where = file.path().string();
  if (!json.is_object()) throw ModelError(result.where, "is not a JSON object", kRemedy);
  const ConfigReader config(json, result.where, kRemedy);
  if (const std::string type = config.text("peft_type"); type != "LORA")
    config.fail("peft_type", fmt::format("is '{}', not LORA", printable(type)));
  for (const auto& [key, meaning] : kRefused) {
    const Json* value = config.find(key);
    if (value && !says_nothing(*value))
      config.fail(key, fmt::format("{}, which is not supported", meaning));
  }
  if (const Json* begun = config.find("init_lora_weights"); begun && begun->is_string()) {
    std::string value = begun->get<std::string>();
    std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const std::string_view beginning : kChangingBeginnings)
      if (value.starts_with(beginning))
        config.fail(
            "init_lora_weights",
            fmt::format("is '{}', which changes the model's own weights too", printable(value)));
  }
  result.rank = static_cast<uint32_t>(config.integer("r", 1, kMostRank));
  result.alpha = config.number_or("lora_alpha", 8, -kLargestAlpha, kLargestAlpha);
  result.root = config.boolean_or("use_rslora", false);
  result.ranks = patterns(config, "rank_pattern", 1, kMostRank);
  result.alphas = patterns(config, "alpha_pattern", -kLargestAlpha, kLargestAlpha);
  const auto names = [&](const char* key) {
    std::vector<std::string> names;
    for (const Json& target : config.list(key)) {
      if (!target.is_string()) config.fail(key, "holds what is no text");
      names.push_back(target.get<std::string>());
    }
    return names;
  };
  if (const Json* targets = config.find("target_modules")) {
    if (!targets->is_string())
      result.targets = names("target_modules");
    else if (*targets != "all-linear")
      result.target_pattern = targets->get<std::string>();
  }
  if (config.find("target_parameters")) result.parameters = names("target_parameters");
  const std::string version = config.text_or("peft_version", "");
  result.old_parameters =
      version.empty() || version.starts_with("0.17.") || version.starts_with("0.18.");
  return result;
}

}  // namespace mulciber
