// What the conversations of a language model, and the texts of a batch, have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/core/model_options.h"
#include "models/families/open_model.h"
#include "models/generation/language_model.h"
#include "models/generation/picture_memory.h"
#include "models/generation/sequence_batch.h"
#include "mulciber/text_generator.h"
#include "text/tokenizer.h"

namespace mulciber {

/// until_full: no number of tokens was asked for.
GenerateEnd end_of(SequenceEnd end, bool until_full);

class GrammarVocabulary;

/// Tokens of a prompt that have a tile's embeddings, which are computed once they are needed.
struct ShownTile : PlacedTile {
  PictureMemory::Rows rows;

  uint32_t end() const { return first + count; }
};

/// A prompt's ids, which of them have embeddings of pictures, and what tells it from others: the
/// ids, with numbers of tiles in their place.
struct ShownPrompt {
  std::vector<int32_t> ids;
  std::vector<ShownTile> tiles;
  std::vector<uint32_t> identity;  // empty: the ids
};

struct SharedGenerator {
  std::shared_ptr<Device> device;
  std::shared_ptr<const OpenModel> opened;
  uint64_t fingerprint = 0;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<Model> model;
  LanguageModel* language = nullptr;  // what it can do
  std::vector<uint32_t> ends;
  /// Of all conversations.
  std::shared_ptr<GrammarVocabulary> grammars;
  std::shared_ptr<PictureMemory> pictures;  // of all conversations; null: the model sees none

  /// weights, cache_tokens: of ModelOptions. Returns how the model was loaded.
  ModelOptions load(std::shared_ptr<const OpenModel> files, const GeneratorOptions& options,
                    std::shared_ptr<WeightsLoad> weights = {}, uint64_t cache_tokens = 0);
  /// Throws ModelError where the model sees no pictures, or the prompt has other ones.
  ShownPrompt show(std::vector<int32_t> ids, const PreparedPictures& shown) const;
  /// An answer by a grammar. ignore_end: the model's ends of text are not among its tokens.
  AnswerGrammar answer_by(const Grammar& grammar, bool ignore_end) const;
  /// Throws ModelError where the tokenizer has no such id.
  void check_id(uint32_t id) const;
  /// A token as a person sees it. Throws likewise.
  std::string token_text(uint32_t id) const;
  /// Tokens of the longest text whose attention is kept. Throws ModelError where the model has
  /// none.
  uint32_t most_attention_tokens() const;
  /// Throws ModelError where the maps of so many tokens are more than kMostAttentionWeights.
  void check_attention(size_t tokens) const;
  /// What the model's files say, within a context.
  Sampling default_sampling(uint32_t context) const;
};

}  // namespace mulciber
