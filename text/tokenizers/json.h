// Hugging Face's tokenizer.json.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/json.h"
#include "text/tokenizer.h"
#include "text/tokenizers/bpe.h"
#include "text/tokenizers/pipeline.h"
#include "text/tokenizers/trie.h"
#include "text/tokenizers/unigram.h"

namespace mulciber {

/// Runs normalizer, pre-tokenizer, model (BPE, Unigram, WordPiece or WordLevel), post-processor and
/// decoder of the file. The file's truncation and padding are ignored; callers do these.
class JsonTokenizer : public Tokenizer {
 public:
  /// json: the whole document; where: the file. special_names: tokenizer_config.json, which names
  /// bos_token and so on, or nullptr. Throws ModelError naming file and component.
  JsonTokenizer(const Json& json, const std::string& where, const Json* special_names = nullptr);

  std::string kind() const override { return kind_; }
  std::int32_t vocab_size() const override;
  std::int32_t base_size() const override;
  std::string_view piece(std::int32_t id) const override;
  std::optional<std::int32_t> id(std::string_view piece) const override;
  bool is_special(std::int32_t id) const override;
  std::vector<Token> tokenize(std::string_view text, const EncodeOptions& options) const override;
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options) const override;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const override;

 private:
  /// A piece outside of the model, which is found before the model sees the text.
  struct AddedToken {
    std::string content;
    std::int32_t id = 0;
    bool special = false;
    bool single_word = false;                      // not inside a word
    bool strip_left = false, strip_right = false;  // includes the adjacent white space
    bool normalized = false;  // found in the normalized text instead of the raw one
  };

  void read_model(const Json& json, const ConfigReader& file);
  void read_bpe(const ConfigReader& model);
  void read_unigram(const ConfigReader& model);
  void read_word_piece(const ConfigReader& model);
  void read_added_tokens(const Json& list, const ConfigReader& file);
  void read_special_names(const Json& json);

  const AddedToken* added(std::int32_t id) const;
  std::vector<Token> tokenize_plain(std::string_view text, const EncodeOptions& options) const;
  template <typename OnText>
  void split_added(std::string_view text, const PieceTrie& trie, bool parse_special,
                   OnText&& on_text, std::vector<Token>& tokens) const;
  void run_model(const Word& word, std::vector<Token>& tokens) const;

  std::string kind_, where_;
  Vocabulary vocabulary_;
  std::optional<BpeModel> bpe_;
  std::optional<WordPieceModel> word_piece_;
  std::optional<UnigramModel> unigram_;
  std::optional<std::int32_t> unknown_id_;
  bool byte_fallback_ = false;              // for a unigram model
  std::vector<AddedToken> added_;           // sorted by id
  PieceTrie added_raw_, added_normalized_;  // values are indices into added_
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Decoder decoder_;
  Template template_;
};

/// Reads tokenizer.json and, if it exists, tokenizer_config.json beside it.
std::shared_ptr<const Tokenizer> load_json_tokenizer(const Checkpoint& checkpoint);

}  // namespace mulciber
