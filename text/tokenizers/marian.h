// Marian's tokenizers: two SentencePiece models with ids from a table.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/json.h"
#include "text/tokenizer.h"
#include "text/tokenizers/sentencepiece.h"
#include "text/tokenizers/vocabulary.h"

namespace mulciber {

/// Pieces of a SentencePiece model with ids from a separate table. A piece that the table lacks
/// becomes <unk>; </s> is added at the end.
class PieceTableTokenizer : public Tokenizer {
 public:
  /// vocabulary: an object of pieces and their ids. Throws ModelError naming `where`.
  PieceTableTokenizer(SentencePieceSpec spec, const std::string& spec_where, const Json& vocabulary,
                      const std::string& where);

  std::int32_t vocab_size() const override { return vocabulary_.size(); }
  std::string_view piece(std::int32_t id) const override;
  std::optional<std::int32_t> id(std::string_view piece) const override;
  /// Special are </s> and <pad>; an unknown word stays visible in decoded text.
  bool is_special(std::int32_t id) const override;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const override;

 protected:
  /// Adds pieces of the table that options.parse_special finds beside <unk>, </s> and <pad>.
  void add_specials(std::span<const std::string> pieces);
  /// The text's tokens, and </s> with options.add_special.
  std::vector<Token> tokenize_parts(std::string_view text, const EncodeOptions& options) const;
  virtual void tokenize_plain(std::string_view text, std::vector<Token>& tokens) const;

 private:
  SentencePieceModel model_;
  Vocabulary vocabulary_;
  PieceTrie specials_;
};

/// One language's tokenizer. A language code such as >>de<< counts as one piece at the start of the
/// text. Elsewhere everything between >> and << in a line is removed, like in Hugging Face's
/// MarianTokenizer.
class MarianTokenizer : public PieceTableTokenizer {
 public:
  using PieceTableTokenizer::PieceTableTokenizer;

  std::string kind() const override;
  std::vector<Token> tokenize(std::string_view text, const EncodeOptions& options) const override;

 private:
  void tokenize_plain(std::string_view text, std::vector<Token>& tokens) const override;
};

/// Loads source.spm, target.spm, vocab.json, and target_vocab.json where tokenizer_config.json sets
/// "separate_vocabs".
TokenizerPair load_marian_tokenizers(const Checkpoint& checkpoint);

}  // namespace mulciber
