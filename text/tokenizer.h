// Converts text to token ids and back, for every vocabulary format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulciber {

class Checkpoint;

struct EncodeOptions {
  bool add_special = true;    // tokens that the model expects around a text: <s>, </s>, [CLS] ...
  bool parse_special = true;  // special tokens spelled out in the text count as such
};

/// An id and its part of the text: the piece, or the text itself where no piece matches.
struct Token {
  std::int32_t id;
  std::string text;
};

/// Ids, and for each the index of its text in a pair (0 or 1, as the model was trained).
struct Encoding {
  std::vector<std::int32_t> ids, type_ids;
};

/// Ids with a special meaning, where the tokenizer's files name them.
struct SpecialIds {
  std::optional<std::int32_t> bos, eos, pad, unk, cls, sep, mask;
};

/// Immutable after construction; safe to use from several threads.
/// In invalid UTF-8 each invalid byte counts as U+FFFD. An empty text gives only the added special
/// tokens.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Algorithm and source ("SentencePiece unigram").
  virtual std::string kind() const = 0;
  /// One more than the highest id.
  virtual std::int32_t vocab_size() const = 0;
  /// One more than the highest id of the pieces into which texts are split. Tokens that were added
  /// to a vocabulary later may have higher ids.
  virtual std::int32_t base_size() const { return vocab_size(); }
  /// Throws ModelError when there is no such id. Empty for an id without a piece.
  virtual std::string_view piece(std::int32_t id) const = 0;
  virtual std::optional<std::int32_t> id(std::string_view piece) const = 0;
  /// Whether decode() leaves the id out unless told otherwise.
  virtual bool is_special(std::int32_t id) const = 0;

  virtual std::vector<Token> tokenize(std::string_view text,
                                      const EncodeOptions& options = {}) const = 0;
  /// Throws ModelError for an id outside the vocabulary.
  virtual std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const = 0;
  /// Encodes two texts as one input, such as question and answer. Throws ModelError where the
  /// tokenizer has no rule for pairs.
  virtual Encoding encode_pair(std::string_view first, std::string_view second,
                               const EncodeOptions& options = {}) const;

  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// The pieces of a text for display, without added special tokens.
  std::vector<std::string> tokens(std::string_view text) const;
  const SpecialIds& special() const { return special_; }

 protected:
  SpecialIds special_;
};

/// The tokenizers of an encoder-decoder's input and output; both pointers are equal where they
/// share one.
struct TokenizerPair {
  std::shared_ptr<const Tokenizer> source, target;
};

/// A GGUF file's tokenizer, or a model folder's: source.spm and target.spm with vocab.json
/// (Marian), tokenizer.json, or tokenizer.model / spiece.model with tokenizer_config.json. Throws
/// ModelError naming the file and the fault, or the files that were looked for when there are none.
TokenizerPair load_tokenizer_pair(const Checkpoint& checkpoint);

/// Loads only the tokenizer of the source side.
std::shared_ptr<const Tokenizer> load_tokenizer(const Checkpoint& checkpoint);

}  // namespace mulciber
