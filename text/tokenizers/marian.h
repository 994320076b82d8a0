// Marian's tokenizers: two SentencePiece models over one numbering of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoints/json.h"
#include "text/tokenizer.h"
#include "text/tokenizers/sentencepiece.h"
#include "text/tokenizers/vocabulary.h"

namespace mulciber {

/// One language's side: pieces from its .spm file, ids from vocab.json. A piece that vocab.json
/// lacks becomes <unk>;
/// </s> is added at the end. A language code such as >>de<< counts as one piece: at the start of
/// the text it is kept, and anything between >> and << in a line is taken out elsewhere, as Hugging
/// Face's MarianTokenizer does.
class MarianTokenizer : public Tokenizer {
 public:
  /// vocabulary: an object of pieces and their ids. Throws ModelError naming `where`.
  MarianTokenizer(SentencePieceSpec spec, const std::string& spec_where, const Json& vocabulary,
                  const std::string& where);

  std::string kind() const override;
  std::int32_t vocab_size() const override { return vocabulary_.size(); }
  std::string_view piece(std::int32_t id) const override;
  std::optional<std::int32_t> id(std::string_view piece) const override;
  /// </s> and <pad>; an unknown word stays visible in decoded text.
  bool is_special(std::int32_t id) const override;
  std::vector<Token> tokenize(std::string_view text, const EncodeOptions& options) const override;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const override;

 private:
  void tokenize_plain(std::string_view text, std::vector<Token>& tokens) const;

  SentencePieceModel model_;
  Vocabulary vocabulary_;
  PieceTrie specials_;
};

/// source.spm, target.spm, vocab.json, and target_vocab.json where tokenizer_config.json says
/// "separate_vocabs".
TokenizerPair load_marian_tokenizers(const Checkpoint& checkpoint);

}  // namespace mulciber
