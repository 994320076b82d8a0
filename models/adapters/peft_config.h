// What PEFT's adapter_config.json says of a LoRA adapter.
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
  /// Of modules whose name matches the expression, whole or behind a dot.
  std::vector<std::pair<std::string, double>> ranks, alphas;
  /// Modules by their name's end; or one expression of whole names; neither: all.
  std::vector<std::string> targets;
  std::string target_pattern;
  /// Parameters that are adapted, by their name's end.
  std::vector<std::string> parameters;
  bool old_parameters = false;  // PEFT before release 0.19 (LowRankAdapter::turned)

  /// Of a module, as the base model calls it.
  uint32_t rank_of(const std::string& module) const;
  double factor_of(const std::string& module, uint32_t rank) const;
  bool targets_module(const std::string& module) const;
  /// The parameter that A and B of a module are for, as the base model calls it; nothing: the
  /// module's weight. Where several of a module are, the last one's bear its name, and those before
  /// one ".base_layer" more each.
  std::optional<std::string> parameter_of(const std::string& module) const;

  std::string where;  // the file, for messages
};

/// Throws ModelError naming file and key, also for what is more than a sum of low-rank products:
/// DoRA, biases, whole modules.
PeftConfig read_peft_config(const ModelFile& file);

}  // namespace mulciber
