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

/// Splits plain text, in which no special tokens are left, into ids.
class GgufTextModel {
 public:
  virtual ~GgufTextModel() = default;
  virtual void tokenize(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  /// The bytes that a normal piece stands for.
  virtual std::string bytes_of_piece(std::string_view piece) const = 0;
};

/// Score-ordered merges over raw bytes, with byte pieces for what no piece covers: "llama".
std::unique_ptr<GgufTextModel> make_gguf_spm(const Vocabulary& vocabulary,
                                             std::vector<Piece> pieces, const std::string& where);
/// BPE with ranked merges: "gpt2". pre: what the file's tokenizer.ggml.pre stands for.
std::unique_ptr<GgufTextModel> make_gguf_bpe(const Vocabulary& vocabulary, const GgufFile& file,
                                             const GgufPreTokenizer& pre);
/// How WordPiece changes a text before it looks for pieces.
struct WordPieceCase {
  bool lower = true;          // letters become lower-case
  bool strip_accents = true;  // of what a character decomposes into the first code point stays
};
/// WordPiece with word starts marked: "bert".
std::unique_ptr<GgufTextModel> make_gguf_word_piece(const Vocabulary& vocabulary,
                                                    std::int32_t unknown_id, WordPieceCase changes);
/// The most probable pieces, as SentencePiece finds them: "t5".
std::unique_ptr<GgufTextModel> make_gguf_unigram(SentencePieceSpec spec, const std::string& where);

/// The tokenizer a GGUF file carries. Ids, special tokens and bytes back are those of llama.cpp,
/// also for invalid UTF-8 (the vectors that the tests hold it to come from there).
class GgufTokenizer : public Tokenizer {
 public:
  /// Throws ModelError naming the file and the key that is missing, malformed or of an unknown
  /// kind.
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
  /// What ends a text, where something does.
  std::optional<std::int32_t> ending() const;

  std::string kind_;
  Vocabulary vocabulary_;
  std::vector<PieceType> types_;
  std::unique_ptr<GgufTextModel> model_;
  bool add_bos_ = false, add_eos_ = false;
  bool add_separator_ = false;  // ends a text where nothing else does
  bool word_piece_ = false;
  bool space_prefix_ = false;  // before text that follows a special token or nothing
  bool strips_space_ = false;  // decode() takes it off
  bool clean_spaces_ = false;  // decode() joins punctuation to the word before
  PieceTrie specials_;         // control, unknown and user-defined pieces
};

}  // namespace mulciber
