// What stands behind a Translator and its tasks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/families/open_model.h"
#include "models/translation/translation_model.h"
#include "mulciber/translator.h"

namespace mulciber {

/// What the decoder was fed, to choose `ids`: step t the start token and the tokens before t.
std::vector<uint32_t> fed_ids(uint32_t start, const std::vector<uint32_t>& ids);

/// Makes it the text, score, ids and tokens of a translation.
void take(Translation& result, const Alternative& best);

struct Translator::Impl {
  std::shared_ptr<Device> device;
  std::unique_ptr<Model> model;
  TranslationModel* translation = nullptr;  // what it can do
  TokenizerPair tokenizers;
  TranslateStatistics statistics;

  explicit Impl(std::shared_ptr<Device> on) : device(std::move(on)) {}
  /// weights: ModelOptions::weights.
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
