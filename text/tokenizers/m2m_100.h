// M2M-100's tokenizer, from its downloaded files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/tokenizers/marian.h"

namespace mulciber {

/// Pieces from sentencepiece.bpe.model and their ids from vocab.json, then a token for each of a
/// hundred languages ("__de__"), then eight unused ids. A text begins with its language and ends
/// with </s>. Source: Fan et al. 2020, arXiv:2010.11125.
class M2m100Tokenizer : public PieceTableTokenizer {
 public:
  /// vocabulary: from vocab.json, without languages. Throws ModelError naming `where` where a
  /// special token is missing, or for an unknown language.
  M2m100Tokenizer(SentencePieceSpec spec, const std::string& spec_where, Json vocabulary,
                  const std::string& language, const std::string& where);

  std::string kind() const override { return "M2M-100 (SentencePiece with vocab.json)"; }
  bool is_special(std::int32_t id) const override;
  std::vector<Token> tokenize(std::string_view text, const EncodeOptions& options) const override;

 private:
  std::int32_t first_language_ = 0, language_ = 0;
};

/// Reads sentencepiece.bpe.model, vocab.json, and `src_lang` of tokenizer_config.json ("en").
std::shared_ptr<const Tokenizer> load_m2m_100_tokenizer(const Checkpoint& checkpoint);

}  // namespace mulciber
