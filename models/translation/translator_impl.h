// Implementation of Translator and its tasks.
#pragma once

#include <functional>
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

/// Pieces of ids; "" for ids without one.
std::vector<std::string> pieces_of(const Tokenizer& tokenizer, std::span<const uint32_t> ids);
/// Text of ids without special tokens; ids without a piece give none.
std::string text_of_ids(const Tokenizer& tokenizer, std::span<const uint32_t> ids);

struct Translator::Impl {
  /// Gives the source ids of all texts, and writes them to the results.
  using ReadSources =
      std::function<std::vector<std::vector<uint32_t>>(std::vector<Translation>& results)>;

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
  /// Throws ModelError where there are not as many factors as heads.
  void check_head_masks(const HeadMasks& masks) const;
  /// Source ids of every text, none for a text without tokens, whose result is complete. Throws
  /// ModelError for texts that are too long, and for unknown languages.
  std::vector<std::vector<uint32_t>> tokenize(std::span<const std::string> texts,
                                              std::vector<Translation>& results,
                                              const TranslateOptions& options);
  /// Does what tokenize() does, for sources that are given as ids.
  std::vector<std::vector<uint32_t>> take_ids(std::span<const std::vector<uint32_t>> sources,
                                              std::vector<Translation>& results,
                                              const TranslateOptions& options);
  std::vector<uint32_t> target_ids(const std::string& text) const;
  const Tokenizer& tokenizer(TranslationSide side) const;
  std::vector<Translation> translate(size_t texts, const TranslateOptions& options,
                                     const ReadSources& read);
  std::vector<TranslationScore> score(std::span<const std::vector<uint32_t>> sources,
                                      std::span<const std::vector<uint32_t>> targets,
                                      const HeadMasks& head_masks);
  Alternative alternative(const Hypothesis& hypothesis) const;
  void finish(Translation& result, const std::vector<Hypothesis>& found);
  AttentionMaps attention(const Translation& result, uint32_t start, const HeadMasks& masks);

 private:
  void take_source(Translation& result, const std::vector<uint32_t>& ids, size_t index,
                   size_t count);
};

}  // namespace mulciber
