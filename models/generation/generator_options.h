// Converts the options and settings of the public TextGenerator to those of models.
#pragma once

#include <vector>

#include "models/core/architecture.h"
#include "mulciber/text_generator.h"
#include "ops/sampling.h"
#include "text/tokenizer.h"

namespace mulciber {

/// longest: the context that the model was made for. Throws ModelError where `options` ask for a
/// longer one.
ModelOptions model_options(const GeneratorOptions& options, uint32_t longest);

/// Throws SettingError when a number is out of its range.
Sampling checked(const Sampling& sampling);

/// Logit biases with each id once. Throws SettingError for too many, for ids outside the
/// vocabulary, and for biases that are NaN or infinity.
LogitBiases checked_biases(const LogitBiases& asked, uint32_t vocabulary);

/// Ids that end an answer, sorted: those of the configuration, or else of the tokenizer, and those
/// of the family's end pieces.
std::vector<uint32_t> end_ids(const Architecture& architecture, const Tokenizer& tokenizer);

}  // namespace mulciber
