// Implementation of Translator and its tasks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/families/open_model.h"
#include "models/translation/translation_model.h"
#include "mulciber/translator.h"

namespace mulciber {

/// The ids that the decoder was fed to choose `ids`: the start token and all of `ids` but the last.
std::vector<uint32_t> fed_ids(uint32_t start, const std::vector<uint32_t>& ids);

/// Writes an alternative to the text, score, ids and tokens of a translation.
void take(Translation& result, const Alternative& best);

struct Translator::Impl {
  std::shared_ptr<Device> device;
  std::shared_ptr<Model> model;
  TranslationModel* translation = nullptr;  // the model, to translate
  TokenizerPair tokenizers;
  TranslateStatistics statistics;

  explicit Impl(std::shared_ptr<Device> on) : device(std::move(on)) {}
  /// weights: as in ModelOptions.
  void load(const OpenModel& opened, const LoadOptions& options,
            std::shared_ptr<WeightsLoad> weights = {});
  GenerationSettings settings(const TranslateOptions& options) const;
  std::vector<std::vector<uint32_t>> tokenize(std::span<const std::string> texts,
                                              std::vector<Translation>& results,
                                              const TranslateOptions& options);
  Alternative alternative(const Hypothesis& hypothesis) const;
  void finish(Translation& result, const std::vector<Hypothesis>& found);
  AttentionMaps attention(const Translation& result, uint32_t start, const HeadMasks& masks);
};

}  // namespace mulciber
