#include "text/tokenizers/gguf.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/tokenizers/specials.h"
#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

constexpr const char* kRemedyOfTool =
    "the file is damaged, or made by a tool this version does not know";

/// Typed reading of keys, with errors that name them.
class Metadata {
 public:
  explicit Metadata(const GgufFile& file) : file_(file) {}

  [[noreturn]] void fail(const std::string& key, const std::string& problem) const {
    throw ModelError(file_.path().string(), "metadata '" + key + "' " + problem, kRemedyOfTool);
  }
  std::string_view text(const std::string& key) const {
    const GgufValue* value = file_.find_value(key);
    if (value == nullptr || !value->is_text()) fail(key, value ? "is not text" : "is missing");
    return value->text();
  }
  std::string_view text_or(const std::string& key, std::string_view otherwise) const {
    return file_.find_value(key) ? text(key) : otherwise;
  }
  bool boolean_or(const std::string& key, bool otherwise) const {
    const GgufValue* value = file_.find_value(key);
    if (value == nullptr) return otherwise;
    if (value->is_array || value->type != GgufType::kBool) fail(key, "is not a boolean");
    return value->boolean();
  }
  std::optional<std::int32_t> id(const std::string& key, std::int32_t vocab_size) const {
    const GgufValue* value = file_.find_value(key);
    if (value == nullptr) return std::nullopt;
    // Some tools write 2^32 - 1 for "none".
    if (value->is_integer() && (value->integer() == 0xffffffff || value->integer() == -1))
      return std::nullopt;
    if (!value->is_integer() || value->integer() < 0 || value->integer() >= vocab_size)
      fail(key, "is " + value->shown().dump() + ", the vocabulary has " +
                    std::to_string(vocab_size) + " tokens");
    return static_cast<std::int32_t>(value->integer());
  }
  /// The bytes of an array; empty where it is missing.
  std::string bytes(const std::string& key) const {
    const GgufValue* value = file_.find_value(key);
    if (value == nullptr) return {};
    if (!value->is_array || (value->type != GgufType::kU8 && value->type != GgufType::kI8))
      fail(key, "is not an array of bytes");
    std::string bytes(value->bytes.size(), '\0');
    std::ranges::transform(value->bytes, bytes.begin(),
                           [](std::byte byte) { return static_cast<char>(byte); });
    return bytes;
  }
  const GgufValue* array(const std::string& key, std::uint64_t count) const {
    const GgufValue* value = file_.find_value(key);
    if (value != nullptr && (!value->is_array || value->count != count))
      fail(key, "is not an array of " + std::to_string(count));
    return value;
  }

 private:
  const GgufFile& file_;
};

std::string joined_punctuation(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    const bool after_space = i > 0 && !out.empty() && out.back() == ' ';
    const bool closes = rest[0] == '?' || rest[0] == '!' || rest[0] == '.' || rest[0] == ',';
    if (after_space && closes) out.pop_back();
    out += rest[0];
  }
  // A separate apostrophe loses the spaces on both sides; some contractions lose the one before
  // them.
  std::string joined;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out.compare(i, 3, " ' ") == 0) {
      joined += '\'';
      i += 2;
    } else {
      joined += out[i];
    }
  }
  out.clear();
  for (std::size_t i = 0; i < joined.size(); ++i) {
    const std::string_view rest = std::string_view(joined).substr(i);
    bool drop = false;
    for (const std::string_view contraction : {" 's", " 'm", " 're", " 've"})
      drop |= i > 0 && rest.starts_with(contraction);
    if (!drop) out += rest[0];
  }
  return out;
}

}  // namespace

GgufTokenizer::GgufTokenizer(const GgufFile& file) {
  const Metadata metadata(file);
  const std::string_view model = metadata.text("tokenizer.ggml.model");
  const GgufValue* tokens = file.find_value("tokenizer.ggml.tokens");
  if (tokens == nullptr || !tokens->is_array || tokens->type != GgufType::kString ||
      tokens->count == 0 || tokens->count > (1u << 24))
    metadata.fail("tokenizer.ggml.tokens", "is not a list of tokens");
  const std::vector<std::string_view> texts = tokens->texts();
  const GgufValue* scores = metadata.array("tokenizer.ggml.scores", texts.size());
  const GgufValue* types = metadata.array("tokenizer.ggml.token_type", texts.size());
  const std::vector<double> score = scores ? scores->numbers() : std::vector<double>();
  const std::vector<std::int64_t> type = types ? types->integers() : std::vector<std::int64_t>();

  vocabulary_ = Vocabulary(std::vector<std::string>(texts.begin(), texts.end()));
  types_.assign(texts.size(), PieceType::kNormal);
  for (std::size_t i = 0; i < type.size(); ++i) {
    if (type[i] < 1 || type[i] > 6)
      metadata.fail("tokenizer.ggml.token_type", "holds " + std::to_string(type[i]));
    types_[i] = static_cast<PieceType>(type[i]);
  }

  if (model == "llama") {
    kind_ = "SentencePiece BPE (GGUF)";
    if (score.empty()) metadata.fail("tokenizer.ggml.scores", "is missing");
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < texts.size(); ++i) pieces.push_back({{}, score[i], types_[i]});
    model_ = make_gguf_spm(vocabulary_, std::move(pieces), file.path().string());
    add_bos_ = true;
    space_prefix_ = true;
  } else if (model == "gpt2") {
    const std::string_view name = metadata.text_or("tokenizer.ggml.pre", "default");
    const GgufPreTokenizer* pre = find_gguf_pre_tokenizer(name);
    if (pre == nullptr)
      throw ModelError(file.path().string(),
                       "metadata 'tokenizer.ggml.pre' is '" + printable(name) +
                           "', a pre-tokenizer that this version does not know",
                       "use the model's Hugging Face folder, whose tokenizer.json says how it "
                       "cuts words");
    kind_ = pre->raw ? "BPE (GGUF)" : "byte-level BPE (GGUF)";
    model_ = make_gguf_bpe(vocabulary_, file, *pre);
    add_bos_ = pre->add_bos;
    add_separator_ = pre->add_separator;
    clean_spaces_ = pre->joins_punctuation;
  } else if (model == "bert") {
    kind_ = "WordPiece (GGUF)";
    const auto unknown = metadata.id("tokenizer.ggml.unknown_token_id", vocab_size());
    if (!unknown) metadata.fail("tokenizer.ggml.unknown_token_id", "is missing");
    WordPieceCase changes;
    changes.lower = metadata.boolean_or("tokenizer.ggml.normalizer.lowercase", true);
    changes.strip_accents =
        metadata.boolean_or("tokenizer.ggml.normalizer.strip_accents", changes.lower);
    model_ = make_gguf_word_piece(vocabulary_, *unknown, changes);
    add_bos_ = add_separator_ = clean_spaces_ = word_piece_ = true;
  } else if (model == "t5") {
    kind_ = "SentencePiece unigram (GGUF)";
    if (score.empty()) metadata.fail("tokenizer.ggml.scores", "is missing");
    SentencePieceSpec spec;
    for (std::size_t i = 0; i < texts.size(); ++i)
      spec.pieces.push_back({std::string(texts[i]), score[i], types_[i]});
    spec.add_dummy_prefix = metadata.boolean_or("tokenizer.ggml.add_space_prefix", true);
    spec.remove_extra_whitespaces =
        metadata.boolean_or("tokenizer.ggml.remove_extra_whitespaces", false);
    spec.precompiled_charsmap = metadata.bytes("tokenizer.ggml.precompiled_charsmap");
    model_ = make_gguf_unigram(std::move(spec), file.path().string());
    add_eos_ = strips_space_ = true;
  } else {
    metadata.fail("tokenizer.ggml.model", "is '" + printable(model) + "', which is not supported");
  }
  add_bos_ = metadata.boolean_or("tokenizer.ggml.add_bos_token", add_bos_);
  add_eos_ = metadata.boolean_or("tokenizer.ggml.add_eos_token", add_eos_);
  add_separator_ = metadata.boolean_or("tokenizer.ggml.add_sep_token", add_separator_);
  if (strips_space_) {  // the model adds it there
    strips_space_ = metadata.boolean_or("tokenizer.ggml.add_space_prefix", true);
  } else {
    space_prefix_ = metadata.boolean_or("tokenizer.ggml.add_space_prefix", space_prefix_);
    strips_space_ = space_prefix_;
  }
  read_specials(file);
}

void GgufTokenizer::read_specials(const GgufFile& file) {
  const Metadata metadata(file);
  const auto id = [&](const char* role) {
    return metadata.id(std::string("tokenizer.ggml.") + role + "_token_id", vocab_size());
  };
  special_.bos = id("bos");
  special_.eos = id("eos");
  special_.pad = id("padding");
  special_.unk = id("unknown");
  special_.cls = id("cls");
  special_.mask = id("mask");
  special_.sep = id("seperator");  // the format's own spelling
  if (!special_.bos) special_.bos = special_.cls;
  if (add_bos_ && !special_.bos) add_bos_ = false;
  if (add_eos_ && !special_.eos) add_eos_ = false;
  if (add_separator_ && !special_.sep) add_separator_ = false;

  std::vector<std::pair<std::string_view, std::int32_t>> specials;
  for (std::int32_t i = 0; i < vocab_size(); ++i) {
    const PieceType type = types_[static_cast<std::size_t>(i)];
    const bool found_in_text = type == PieceType::kControl || type == PieceType::kUnknown ||
                               type == PieceType::kUserDefined;
    if (found_in_text && !vocabulary_.piece(i).empty())
      specials.emplace_back(vocabulary_.piece(i), i);
  }
  specials_ = PieceTrie(std::move(specials));
}

std::int32_t GgufTokenizer::base_size() const {
  const auto last = std::find_if(types_.rbegin(), types_.rend(), [](PieceType type) {
    return type == PieceType::kNormal || type == PieceType::kByte;
  });
  return static_cast<std::int32_t>(types_.rend() - last);
}

std::string_view GgufTokenizer::piece(std::int32_t id) const {
  if (!vocabulary_.has(id)) throw unknown_token_id(id, vocab_size());
  return vocabulary_.piece(id);
}

bool GgufTokenizer::is_special(std::int32_t id) const {
  if (!vocabulary_.has(id)) return false;
  const PieceType type = types_[static_cast<std::size_t>(id)];
  return type == PieceType::kControl || type == PieceType::kUnknown;
}

std::optional<std::int32_t> GgufTokenizer::ending() const {
  if (add_eos_) return special_.eos;
  return add_separator_ ? special_.sep : std::nullopt;
}

Encoding GgufTokenizer::encode_pair(std::string_view first, std::string_view second,
                                    const EncodeOptions& options) const {
  if (!ending()) return Tokenizer::encode_pair(first, second, options);
  Encoding all;
  const auto add = [&](std::string_view text, std::int32_t type) {
    EncodeOptions bare = options;
    bare.add_special = false;
    const std::vector<std::int32_t> ids = encode(text, bare);
    all.ids.insert(all.ids.end(), ids.begin(), ids.end());
    if (options.add_special) all.ids.push_back(*ending());
    all.type_ids.resize(all.ids.size(), type);
  };
  if (options.add_special && add_bos_) all.ids.push_back(*special_.bos);
  add(first, 0);
  // RoBERTa has a second separator between the texts, and no type ids.
  if (options.add_special && add_separator_ && !word_piece_) all.ids.push_back(*special_.sep);
  add(second, word_piece_ ? 1 : 0);
  return all;
}

std::vector<Token> GgufTokenizer::tokenize(std::string_view text,
                                           const EncodeOptions& options) const {
  // Special tokens that occur in the text; longer ones are cut out first, at every position.
  std::set<std::int32_t> present;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::int32_t node = PieceTrie::kRoot;
    for (std::size_t i = at; i < text.size(); ++i) {
      node = specials_.step(node, static_cast<unsigned char>(text[i]));
      if (node == PieceTrie::kNone) break;
      const std::int32_t id = specials_.value(node);
      if (id != PieceTrie::kNone && (options.parse_special || !is_special(id))) present.insert(id);
    }
  }
  std::vector<std::int32_t> order(present.begin(), present.end());
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return piece(a).size() > piece(b).size();
  });
  struct Part {
    std::string_view text;
    std::int32_t id = -1;  // special token, or -1
  };
  std::vector<Part> parts = {{text}};
  for (const std::int32_t id : order) {
    std::vector<Part> cut;
    for (const Part& part : parts) {
      if (part.id >= 0) {
        cut.push_back(part);
        continue;
      }
      std::size_t begin = 0;
      for (std::size_t at; (at = part.text.find(piece(id), begin)) != std::string_view::npos;) {
        if (at > begin) cut.push_back({part.text.substr(begin, at - begin)});
        cut.push_back({{}, id});
        begin = at + piece(id).size();
      }
      if (begin < part.text.size()) cut.push_back({part.text.substr(begin)});
    }
    parts = std::move(cut);
  }

  std::vector<std::int32_t> ids;
  if (options.add_special && add_bos_) ids.push_back(*special_.bos);
  bool after_special = true;
  std::string prefixed;
  for (const Part& part : parts) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      after_special = true;
    } else if (!part.text.empty()) {
      prefixed = space_prefix_ && after_special ? " " : "";
      prefixed += part.text;
      model_->tokenize(prefixed, ids);
      after_special = false;
    }
  }
  if (options.add_special && ending()) ids.push_back(*ending());

  std::vector<Token> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) tokens.push_back({id, std::string(piece(id))});
  return tokens;
}

std::string GgufTokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string out;
  bool strip = strips_space_;
  for (const std::int32_t id : ids) {
    const std::string_view text = piece(id);
    const PieceType type = types_[static_cast<std::size_t>(id)];
    if (is_special(id)) {
      if (!skip_special) out += text;
      // The space after a leading special token belongs to the text after it.
      if (id == special_.bos && out.size() == (skip_special ? 0 : text.size())) continue;
    } else if (type == PieceType::kByte) {
      out += static_cast<char>(byte_of_piece(text));
    } else {
      std::string bytes =
          type == PieceType::kUserDefined ? std::string(text) : model_->bytes_of_piece(text);
      if (strip && bytes.starts_with(' ')) bytes.erase(0, 1);
      out += bytes;
    }
    strip = false;
  }
  return clean_spaces_ ? joined_punctuation(out) : out;
}

}  // namespace mulciber
