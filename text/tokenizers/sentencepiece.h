// SentencePiece models: normalization, unigram and BPE segmentation, decoding.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoints/model_file.h"
#include "text/tokenizer.h"
#include "text/tokenizers/charsmap.h"
#include "text/tokenizers/unigram.h"

namespace mulciber {

/// The content of a SentencePiece file, or of another container.
struct SentencePieceSpec {
  enum class Algorithm { kUnigram, kBpe };
  Algorithm algorithm = Algorithm::kUnigram;
  std::vector<Piece> pieces;  // the index is the id
  bool byte_fallback = false;
  std::string precompiled_charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
  std::string unk_surface = " \xE2\x81\x87 ";  // decoded text of an unknown id
  std::string bos_piece = "<s>", eos_piece = "</s>", pad_piece = "<pad>";
};

/// Reads a .model or .spm file. Throws ModelError naming the file.
SentencePieceSpec read_sentencepiece(const ModelFile& file);
/// Parses the file's content in memory; `where` names it in errors.
/// Source of the format: sentencepiece_model.proto (field numbers beside the reader).
SentencePieceSpec parse_sentencepiece(std::span<const std::byte> bytes, const std::string& where);

/// Segments and decodes like the SentencePiece library. Ids are the model's own.
class SentencePieceModel {
 public:
  /// Throws ModelError when the pieces contradict each other: no or several unknown pieces,
  /// duplicates, missing byte pieces for the fallback.
  SentencePieceModel(SentencePieceSpec spec, const std::string& where);

  const SentencePieceSpec& spec() const { return spec_; }
  std::int32_t unknown_id() const { return unknown_id_; }
  std::int32_t size() const { return static_cast<std::int32_t>(spec_.pieces.size()); }
  std::optional<std::int32_t> find(std::string_view piece) const;

  std::string normalize(std::string_view text) const;
  /// A run of unknown characters is one token with their text, unless byte pieces replace it.
  std::vector<Token> tokenize(std::string_view text) const;
  /// A piece that is not in the model is copied to the text.
  std::string decode(std::span<const std::string_view> pieces) const;
  /// Decodes ids of `tokenizer`: its special tokens are skipped, or copied between the decoded runs
  /// of other tokens. Throws ModelError for an id outside its vocabulary.
  std::string decode(const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
                     bool skip_special) const;

 private:
  std::vector<Segment> segment_bpe(std::string_view text) const;

  SentencePieceSpec spec_;
  CharsMap charsmap_;
  std::unordered_map<std::string_view, std::int32_t> by_text_;  // views into spec_.pieces
  UnigramModel unigram_;
  PieceTrie user_defined_;  // symbols that are not normalized or split
  std::int32_t unknown_id_ = 0;
};

/// A SentencePiece file as the tokenizer of a model.
class SentencePieceTokenizer : public Tokenizer {
 public:
  struct Affixes {
    bool bos = false, eos = false;  // added around a text
  };
  SentencePieceTokenizer(SentencePieceSpec spec, const std::string& where, Affixes affixes);

  std::string kind() const override;
  std::int32_t vocab_size() const override { return model_.size(); }
  std::string_view piece(std::int32_t id) const override;
  std::optional<std::int32_t> id(std::string_view piece) const override {
    return model_.find(piece);
  }
  bool is_special(std::int32_t id) const override;
  std::vector<Token> tokenize(std::string_view text, const EncodeOptions& options) const override;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const override;

 private:
  SentencePieceModel model_;
  Affixes affixes_;
  PieceTrie specials_;  // control pieces, for texts that spell them out
};

}  // namespace mulciber
