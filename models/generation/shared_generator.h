// A loaded language model with what all its conversations and sequences share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/core/model_options.h"
#include "models/families/open_model.h"
#include "models/generation/image_embedding_cache.h"
#include "models/generation/language_model.h"
#include "models/generation/sequence_slots.h"
#include "mulciber/text_generator.h"
#include "text/tokenizer.h"

namespace mulciber {

class CompletionGrammar;
class GrammarVocabulary;

/// Tokens of a prompt that have an image tile's embeddings, which are computed once they are
/// needed.
struct ShownTile : PlacedTile {
  ImageEmbeddingCache::Rows rows;

  uint32_t end() const { return first + count; }
};

/// A prompt's ids, the image tiles among them, and what distinguishes it from other prompts: the
/// ids, with numbers of tiles in place of image tokens.
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
  LanguageModel* language = nullptr;  // the model, to continue texts
  std::vector<uint32_t> ends;
  /// The grammars of all conversations.
  std::shared_ptr<GrammarVocabulary> grammars;
  /// Shared by all conversations; null: the model sees no images.
  std::shared_ptr<ImageEmbeddingCache> images;

  /// weights, cache_tokens: as in ModelOptions. Returns how the model was loaded.
  ModelOptions load(std::shared_ptr<const OpenModel> files, const GeneratorOptions& options,
                    std::shared_ptr<WeightsLoad> weights = {}, uint64_t cache_tokens = 0);
  /// Places the tiles of images in a prompt. Throws ModelError where the model sees no images, or
  /// the prompt has other ones.
  ShownPrompt show(std::vector<int32_t> ids, const PreparedImages& shown) const;
  /// Begins a completion by a grammar. ignore_end: no end of text of the model ends it.
  CompletionGrammar completion_grammar(const Grammar& grammar, bool ignore_end) const;
  /// Throws ModelError where the tokenizer has no such id.
  void check_id(uint32_t id) const;
  /// The text of a token for a reader. Throws as check_id().
  std::string token_text(uint32_t id) const;
  /// The text of tokens, without special ones. Throws as check_id().
  std::string text(std::span<const uint32_t> ids) const;
  /// Tokens of the longest text whose attention maps are kept. Throws ModelError where the model
  /// has no attention.
  uint32_t most_attention_tokens() const;
  /// Throws ModelError where the maps of a text have more than kMostAttentionWeights weights.
  void check_attention(size_t tokens) const;
  /// The settings of the model's files, with a penalty window within the context.
  Sampling default_sampling(uint32_t context) const;
};

}  // namespace mulciber
