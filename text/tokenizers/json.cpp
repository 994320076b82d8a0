#include "text/tokenizers/json.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint.h"
#include "mulciber/error.h"
#include "text/tokenizers/specials.h"
#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

constexpr const char* kRemedy = "the file is damaged, or uses something this version does not know";

bool ends_with_word(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && (static_cast<unsigned char>(text[at - 1]) & 0xC0) == 0x80) --at;
  return at > 0 && is_word(first_code_point(text.substr(at - 1)).value);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word(first_code_point(text).value);
}

/// Number of bytes of white space at the end of `text`.
std::size_t trailing_space(std::string_view text) {
  std::size_t begin = text.size();
  for (;;) {
    std::size_t at = begin;
    while (at > 0 && (static_cast<unsigned char>(text[at - 1]) & 0xC0) == 0x80) --at;
    if (at == 0 || !is_white_space(first_code_point(text.substr(at - 1)).value))
      return text.size() - begin;
    begin = at - 1;
  }
}

std::size_t leading_space(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    const CodePoint c = first_code_point(text.substr(end));
    if (!is_white_space(c.value)) break;
    end += c.length;
  }
  return end;
}

}  // namespace

JsonTokenizer::JsonTokenizer(const Json& json, const std::string& where, const Json* special_names)
    : where_(where) {
  const ConfigReader file(json, where, kRemedy);
  const auto component = [&](const char* key) -> const Json& {
    static const Json kNull;
    const Json* found = file.find(key);
    return found == nullptr ? kNull : *found;
  };
  normalizer_ = read_normalizer(component("normalizer"), file);
  pre_tokenizer_ = read_pre_tokenizer(component("pre_tokenizer"), file);
  decoder_ = read_decoder(component("decoder"), file);
  read_model(file.value("model"), file);
  if (file.has("added_tokens")) read_added_tokens(file.list("added_tokens"), file);
  template_ = read_post_processor(component("post_processor"), file, vocab_size());
  if (special_names != nullptr) read_special_names(*special_names);
}

void JsonTokenizer::read_model(const Json& json, const ConfigReader& file) {
  const ConfigReader model = component_reader(json, file, "model");
  // The oldest files have no type.
  const std::string type = model.text_or("type", model.has("merges")   ? "BPE"
                                                 : model.has("unk_id") ? "Unigram"
                                                                       : "WordPiece");
  kind_ = type + " (tokenizer.json)";
  if (type == "Unigram") return read_unigram(model);
  vocabulary_ = Vocabulary::from_json(model.value("vocab"), model.where());
  if (type == "BPE") return read_bpe(model);
  if (type == "WordPiece" || type == "WordLevel") {
    unknown_id_ = vocabulary_.find(model.text_or("unk_token", "[UNK]"));
    if (type == "WordPiece") read_word_piece(model);
    return;
  }
  model.fail("type", "is '" + printable(type) + "', which is not supported");
}

void JsonTokenizer::read_bpe(const ConfigReader& model) {
  std::vector<BpeModel::Merge> merges;
  for (const Json& entry : model.list("merges")) {
    if (entry.is_string()) {
      const auto& line = entry.get_ref<const std::string&>();
      if (line.starts_with("#version")) continue;
      const std::size_t space = line.find(' ');
      if (space == line.npos || line.find(' ', space + 1) != line.npos)
        model.fail("merges",
                   "holds '" + printable(line) + "', not two pieces with a space between");
      merges.emplace_back(line.substr(0, space), line.substr(space + 1));
    } else {
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_string())
        model.fail("merges", "holds an entry that is not a pair of pieces");
      merges.emplace_back(entry[0].get<std::string>(), entry[1].get<std::string>());
    }
  }
  BpeModel::Options options;
  if (model.has("unk_token")) {
    options.unknown_id = vocabulary_.find(model.text("unk_token"));
    unknown_id_ = options.unknown_id;
  }
  options.continuing_prefix = model.text_or("continuing_subword_prefix", "");
  options.end_suffix = model.text_or("end_of_word_suffix", "");
  options.fuse_unknown = model.boolean_or("fuse_unk", false);
  options.byte_fallback = model.boolean_or("byte_fallback", false);
  options.ignore_merges = model.boolean_or("ignore_merges", false);
  bpe_.emplace(vocabulary_, merges, options, model.where());
}

void JsonTokenizer::read_unigram(const ConfigReader& model) {
  std::vector<Piece> pieces;
  std::vector<std::string> names;
  for (const Json& entry : model.list("vocab")) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      model.fail("vocab", "holds an entry that is not a pair of piece and score");
    if (static_cast<std::int64_t>(pieces.size()) >= kLargestVocab)
      model.fail("vocab", "is too long");
    pieces.push_back({entry[0].get<std::string>(), entry[1].get<double>(), PieceType::kNormal});
    names.push_back(pieces.back().text);
  }
  vocabulary_ = Vocabulary(std::move(names));
  if (const auto unknown = model.optional_integer("unk_id", 0, vocabulary_.size() - 1))
    unknown_id_ = static_cast<std::int32_t>(*unknown);
  byte_fallback_ = model.boolean_or("byte_fallback", false);
  unigram_.emplace(pieces, unknown_id_.value_or(-1), UnigramModel::Precision::kDouble);
}

void JsonTokenizer::read_word_piece(const ConfigReader& model) {
  if (!unknown_id_) model.fail("unk_token", "is not in the vocabulary");
  word_piece_.emplace(
      vocabulary_,
      WordPieceModel::Options{.unknown_id = *unknown_id_,
                              .continuing_prefix = model.text_or("continuing_subword_prefix", "##"),
                              .longest_word = static_cast<std::size_t>(
                                  model.integer_or("max_input_chars_per_word", 100, 1, 1 << 20))});
}

void JsonTokenizer::read_added_tokens(const Json& list, const ConfigReader& file) {
  for (const Json& entry : list) {
    const ConfigReader reader = component_reader(entry, file, "added_tokens");
    AddedToken token;
    token.content = reader.text("content");
    token.id = static_cast<std::int32_t>(reader.integer("id", 0, kLargestVocab - 1));
    token.special = reader.boolean_or("special", false);
    token.single_word = reader.boolean_or("single_word", false);
    token.strip_left = reader.boolean_or("lstrip", false);
    token.strip_right = reader.boolean_or("rstrip", false);
    token.normalized = reader.boolean_or("normalized", !token.special);
    if (token.content.empty()) reader.fail("content", "is empty");
    const auto known = vocabulary_.find(token.content);
    const bool taken = vocabulary_.has(token.id) && !vocabulary_.piece(token.id).empty();
    if (known ? *known != token.id : taken)
      reader.fail("id", "gives '" + printable(token.content) + "' the number " +
                            std::to_string(token.id) + ", but the vocabulary has " +
                            (known ? "it at " + std::to_string(*known)
                                   : "'" + printable(vocabulary_.piece(token.id)) + "' there"));
    added_.push_back(std::move(token));
  }
  std::sort(added_.begin(), added_.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < added_.size(); ++i)
    if (added_[i].id == added_[i - 1].id)
      throw ModelError(file.where(), "adds two tokens with the id " + std::to_string(added_[i].id),
                       kRemedy);

  std::vector<std::string> contents(added_.size());  // the tries below refer to these
  std::vector<std::pair<std::string_view, std::int32_t>> raw, normalized;
  for (std::size_t i = 0; i < added_.size(); ++i) {
    contents[i] = added_[i].content;
    if (added_[i].normalized && normalizer_) contents[i] = normalizer_(std::move(contents[i]));
    if (contents[i].empty()) continue;
    (added_[i].normalized ? normalized : raw)
        .emplace_back(contents[i], static_cast<std::int32_t>(i));
  }
  added_raw_ = PieceTrie(std::move(raw));
  added_normalized_ = PieceTrie(std::move(normalized));
}

void JsonTokenizer::read_special_names(const Json& json) {
  if (!json.is_object()) return;
  const auto find = [&](const char* key) -> std::optional<std::int32_t> {
    auto it = json.find(key);
    if (it == json.end()) return std::nullopt;
    // Older files write the token as an object.
    const Json* text = &*it;
    if (text->is_object()) {
      it = text->find("content");
      if (it == text->end()) return std::nullopt;
      text = &*it;
    }
    return text->is_string() ? id(text->get_ref<const std::string&>()) : std::nullopt;
  };
  special_ = {find("bos_token"), find("eos_token"), find("pad_token"), find("unk_token"),
              find("cls_token"), find("sep_token"), find("mask_token")};
}

const JsonTokenizer::AddedToken* JsonTokenizer::added(std::int32_t id) const {
  const auto it = std::lower_bound(added_.begin(), added_.end(), id,
                                   [](const AddedToken& t, std::int32_t i) { return t.id < i; });
  return it != added_.end() && it->id == id ? &*it : nullptr;
}

std::int32_t JsonTokenizer::vocab_size() const {
  return std::max(vocabulary_.size(), added_.empty() ? 0 : added_.back().id + 1);
}

std::int32_t JsonTokenizer::base_size() const {
  // Some files also list added tokens among the pieces.
  std::int32_t size = vocabulary_.size();
  while (size > 0 && (vocabulary_.piece(size - 1).empty() || added(size - 1) != nullptr)) --size;
  return size;
}

std::string_view JsonTokenizer::piece(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) throw unknown_token_id(id, vocab_size());
  if (const AddedToken* token = added(id)) return token->content;
  return vocabulary_.has(id) ? std::string_view(vocabulary_.piece(id)) : std::string_view();
}

std::optional<std::int32_t> JsonTokenizer::id(std::string_view piece) const {
  for (const AddedToken& token : added_)
    if (token.content == piece) return token.id;
  return vocabulary_.find(piece);
}

bool JsonTokenizer::is_special(std::int32_t id) const {
  const AddedToken* token = added(id);
  return token != nullptr && token->special;
}

/// Cuts the added tokens of one trie out of a text, leftmost first, then longest.
template <typename OnText>
void JsonTokenizer::split_added(std::string_view text, const PieceTrie& trie, bool parse_special,
                                OnText&& on_text, std::vector<Token>& tokens) const {
  std::size_t begin = 0;  // start of the text not yet passed on
  for (std::size_t at = 0; at < text.size();) {
    const PieceTrie::Match match = trie.longest_prefix(text.substr(at));
    if (match.length == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = added_[static_cast<std::size_t>(match.value)];
    std::size_t first = at, last = at + match.length;
    at = last;
    if (token.special && !parse_special) continue;
    if (token.single_word &&
        (ends_with_word(text.substr(0, first)) || starts_with_word(text.substr(last))))
      continue;
    if (token.strip_left) first -= trailing_space(text.substr(begin, first - begin));
    if (token.strip_right) last += leading_space(text.substr(last));
    if (first > begin) on_text(text.substr(begin, first - begin), begin == 0);
    tokens.push_back({token.id, token.content});
    begin = at = last;
  }
  if (begin < text.size()) on_text(text.substr(begin), begin == 0);
}

std::vector<Token> JsonTokenizer::tokenize_plain(std::string_view text,
                                                 const EncodeOptions& options) const {
  const std::string valid = replace_invalid(text);
  std::vector<Token> tokens;
  split_added(
      valid, added_raw_, options.parse_special,
      [&](std::string_view part, bool part_first) {
        const std::string normal = normalizer_ ? normalizer_(std::string(part)) : std::string(part);
        split_added(
            normal, added_normalized_, options.parse_special,
            [&](std::string_view run, bool run_first) {
              std::vector<Word> words = {{std::string(run), part_first && run_first}};
              if (pre_tokenizer_) pre_tokenizer_(words);
              for (const Word& word : words) run_model(word, tokens);
            },
            tokens);
      },
      tokens);
  return tokens;
}

void JsonTokenizer::run_model(const Word& word, std::vector<Token>& tokens) const {
  if (word.text.empty()) return;
  const auto add = [&](std::int32_t id) { tokens.push_back({id, std::string(piece(id))}); };
  if (!unigram_) {
    std::vector<std::int32_t> ids;
    if (bpe_) {
      bpe_->tokenize(word.text, ids);
    } else if (word_piece_) {
      word_piece_->tokenize(word.text, ids);
    } else if (const auto whole = vocabulary_.find(word.text)) {
      ids.push_back(*whole);
    } else if (unknown_id_) {
      ids.push_back(*unknown_id_);
    }
    std::for_each(ids.begin(), ids.end(), add);
    return;
  }
  const std::vector<Segment> segments = unigram_->segment(word.text);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    if (segment.id >= 0 && segment.id != unknown_id_) {
      add(segment.id);
      continue;
    }
    std::size_t end = segment.end;  // a run of unknown characters becomes one token
    while (i + 1 < segments.size() && segments[i + 1].id == segment.id) end = segments[++i].end;
    std::string surface = word.text.substr(segment.begin, end - segment.begin);
    std::vector<std::int32_t> bytes;
    if (byte_fallback_)
      for (const char byte : surface)
        if (const auto id = vocabulary_.find(piece_of_byte(static_cast<unsigned char>(byte))))
          bytes.push_back(*id);
    if (bytes.size() == surface.size()) {
      std::for_each(bytes.begin(), bytes.end(), add);
    } else if (unknown_id_) {
      tokens.push_back({*unknown_id_, std::move(surface)});
    } else {
      throw ModelError(where_, "has no piece for '" + printable(surface) + "' and no unknown token",
                       "leave these characters out of the text");
    }
  }
}

std::vector<Token> JsonTokenizer::tokenize(std::string_view text,
                                           const EncodeOptions& options) const {
  std::vector<Token> plain = tokenize_plain(text, options);
  if (!options.add_special || template_.single.empty()) return plain;
  std::vector<Token> tokens;
  for (const Template::Item& item : template_.single) {
    for (const std::int32_t id : item.ids) tokens.push_back({id, std::string(piece(id))});
    // A copy, because a template may name the text more than once.
    if (item.kind == Template::Item::Kind::kFirst)
      tokens.insert(tokens.end(), plain.begin(), plain.end());
  }
  return tokens;
}

Encoding JsonTokenizer::encode_pair(std::string_view first, std::string_view second,
                                    const EncodeOptions& options) const {
  using Item = Template::Item;
  const std::vector<Token> a = tokenize_plain(first, options), b = tokenize_plain(second, options);
  Encoding result;
  const auto add = [&](std::int32_t id, std::int32_t type_id) {
    result.ids.push_back(id);
    result.type_ids.push_back(type_id);
  };
  const std::vector<Item> plain = {{Item::Kind::kFirst, 0, {}}, {Item::Kind::kSecond, 1, {}}};
  const bool bare = template_.pair.empty() || !options.add_special;
  for (const Item& item : bare ? plain : template_.pair) {
    for (const std::int32_t id : item.ids) add(id, item.type_id);
    if (item.kind == Item::Kind::kSpecial) continue;
    for (const Token& token : item.kind == Item::Kind::kFirst ? a : b) add(token.id, item.type_id);
  }
  return result;
}

std::string JsonTokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::vector<std::string> pieces;
  for (const std::int32_t id : ids)
    if (std::string_view text = piece(id); !text.empty() && !(skip_special && is_special(id)))
      pieces.emplace_back(text);
  if (decoder_) decoder_(pieces);
  std::string out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && !decoder_) out += ' ';
    out += pieces[i];
  }
  return out;
}

std::shared_ptr<const Tokenizer> load_json_tokenizer(const Checkpoint& checkpoint) {
  const auto path = checkpoint.folder() / "tokenizer.json";
  return std::make_shared<const JsonTokenizer>(read_json(checkpoint.files().open(path)),
                                               path.string(), checkpoint.tokenizer_config());
}

}  // namespace mulciber
