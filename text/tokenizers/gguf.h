// Tokenizers from the metadata of GGUF files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoints/gguf.h"
#include "text/tokenizer.h"
#include "text/tokenizers/gguf_pre.h"
#include "text/tokenizers/sentencepiece.h"
#include "text/tokenizers/trie.h"
#include "text/tokenizers/unigram.h"
#include "text/tokenizers/vocabulary.h"

namespace mulciber {

/// Splits plain text without special tokens into ids.
class GgufTextModel {
 public:
  virtual ~GgufTextModel() = default;
  virtual void tokenize(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  /// The bytes that a normal piece represents.
  virtual std::string bytes_of_piece(std::string_view piece) const = 0;
};

/// Merges ordered by score over raw bytes, with byte pieces where no piece matches: "llama".
std::unique_ptr<GgufTextModel> make_gguf_spm(const Vocabulary& vocabulary,
                                             std::vector<Piece> pieces, const std::string& where);
/// BPE with ranked merges: "gpt2". pre: the rules named by the file's tokenizer.ggml.pre.
std::unique_ptr<GgufTextModel> make_gguf_bpe(const Vocabulary& vocabulary, const GgufFile& file,
                                             const GgufPreTokenizer& pre);
/// Changes that WordPiece makes to a text before it searches pieces.
struct WordPieceCase {
  bool lower = true;          // letters become lower-case
  bool strip_accents = true;  // keep the first code point of a character's decomposition
};
/// WordPiece with marked word starts: "bert".
std::unique_ptr<GgufTextModel> make_gguf_word_piece(const Vocabulary& vocabulary,
                                                    std::int32_t unknown_id, WordPieceCase changes);
/// The most probable pieces, found like in SentencePiece: "t5".
std::unique_ptr<GgufTextModel> make_gguf_unigram(SentencePieceSpec spec, const std::string& where);

/// The tokenizer of a GGUF file. Ids, special tokens and decoded bytes equal llama.cpp's, also for
/// invalid UTF-8 (the tests' vectors come from llama.cpp).
class GgufTokenizer : public Tokenizer {
 public:
  /// Throws ModelError naming the file and the key that is missing, malformed or unknown.
  explicit GgufTokenizer(const GgufFile& file);

  std::string kind() const override { return kind_; }
  std::int32_t vocab_size() const override { return vocabulary_.size(); }
  std::int32_t base_size() const override;
  std::string_view piece(std::int32_t id) const override;
  std::optional<std::int32_t> id(std::string_view piece) const override {
    return vocabulary_.find(piece);
  }
  bool is_special(std::int32_t id) const override;
  std::vector<Token> tokenize(std::string_view text, const EncodeOptions& options) const override;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const override;
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options) const override;

 private:
  void read_specials(const GgufFile& file);
  /// The id that ends a text, if any.
  std::optional<std::int32_t> ending() const;

  std::string kind_;
  Vocabulary vocabulary_;
  std::vector<PieceType> types_;
  std::unique_ptr<GgufTextModel> model_;
  bool add_bos_ = false, add_eos_ = false;
  bool add_separator_ = false;  // ends a text without another end token
  bool word_piece_ = false;
  bool space_prefix_ = false;  // before text at the start or after a special token
  bool strips_space_ = false;  // decode() removes it
  bool clean_spaces_ = false;  // decode() joins punctuation to the preceding word
  PieceTrie specials_;         // control, unknown and user-defined pieces
};

}  // namespace mulciber
