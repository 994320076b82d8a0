// PEFT's adapter_config.json of a LoRA adapter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoints/model_file.h"

namespace mulciber {

struct PeftConfig {
  uint32_t rank = 0;
  double alpha = 0;
  bool root = false;  // use_rslora: alpha is divided by the square root of the rank
  /// Values for modules whose name, or its part after a dot, matches the expression.
  std::vector<std::pair<std::string, double>> ranks, alphas;
  /// Adapted modules: endings of names, or one expression for whole names; both empty: all modules.
  std::vector<std::string> targets;
  std::string target_pattern;
  /// Adapted parameters: endings of names.
  std::vector<std::string> parameters;
  bool old_parameters = false;  // PEFT before release 0.19 (LowRankAdapter::turned)

  /// Settings of a module. module: its name in the base model.
  uint32_t rank_of(const std::string& module) const;
  double factor_of(const std::string& module, uint32_t rank) const;
  bool targets_module(const std::string& module) const;
  /// The parameter, by its name in the base model, that A and B of a module update; no value: the
  /// module's weight. If a module has several, PEFT stores the last one under the module's name,
  /// and adds one more ".base_layer" for each before it.
  std::optional<std::string> parameter_of(const std::string& module) const;

  std::string where;  // the file, for messages
};

/// Reads the file. Throws ModelError naming file and key, also for features beyond low-rank
/// products: DoRA, biases, whole modules.
PeftConfig read_peft_config(const ModelFile& file);

}  // namespace mulciber
