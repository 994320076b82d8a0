#include "text/tokenizers/marian.h"

#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint.h"
#include "mulciber/error.h"
#include "text/tokenizers/specials.h"
#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

constexpr const char* kUnknown = "<unk>";

/// The bytes of a language code: from the first ">>" of a line to its last "<<", with at least one
/// character between, like the longest match of ">>.+<<".
struct CodeMatch {
  std::size_t begin = std::string_view::npos, end = 0;
};

CodeMatch find_language_code(std::string_view line) {
  const std::size_t open = line.find(">>");
  const std::size_t close = line.rfind("<<");
  if (open == line.npos || close == line.npos || close < open + 3) return {};
  return {open, close + 2};
}

std::string remove_language_codes(std::string_view text) {
  std::string out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t newline = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, newline - begin);
    const CodeMatch code = find_language_code(line);
    out.append(line.substr(0, code.begin));
    if (code.begin != line.npos) out.append(line.substr(code.end));
    if (newline < text.size()) out += '\n';
    begin = newline + 1;
  }
  return out;
}

}  // namespace

PieceTableTokenizer::PieceTableTokenizer(SentencePieceSpec spec, const std::string& spec_where,
                                         const Json& vocabulary, const std::string& where)
    : model_(std::move(spec), spec_where), vocabulary_(Vocabulary::from_json(vocabulary, where)) {
  special_.unk = id(kUnknown);
  special_.eos = id("</s>");
  special_.pad = id("<pad>");
  if (!special_.unk || !special_.eos)
    throw ModelError(where, "lacks <unk> or </s>", "check that this is the model's vocabulary");
  add_specials({});
}

void PieceTableTokenizer::add_specials(std::span<const std::string> pieces) {
  std::vector<std::pair<std::string_view, std::int32_t>> specials;
  for (const auto& special : {special_.unk, special_.eos, special_.pad})
    if (special) specials.emplace_back(vocabulary_.piece(*special), *special);
  for (const std::string& piece : pieces) {
    const std::int32_t special = vocabulary_.find(piece).value();
    specials.emplace_back(vocabulary_.piece(special), special);
  }
  specials_ = PieceTrie(std::move(specials));
}

std::string_view PieceTableTokenizer::piece(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) throw unknown_token_id(id, vocab_size());
  return vocabulary_.piece(id);
}

std::optional<std::int32_t> PieceTableTokenizer::id(std::string_view piece) const {
  return vocabulary_.find(piece);
}

bool PieceTableTokenizer::is_special(std::int32_t id) const {
  return id == special_.eos || id == special_.pad;
}

void PieceTableTokenizer::tokenize_plain(std::string_view text, std::vector<Token>& tokens) const {
  for (Token& token : model_.tokenize(text)) {
    token.id = id(token.text).value_or(*special_.unk);
    tokens.push_back(std::move(token));
  }
}

std::vector<Token> PieceTableTokenizer::tokenize_parts(std::string_view text,
                                                       const EncodeOptions& options) const {
  std::vector<Token> tokens;
  split_at_specials(
      text, options.parse_special ? &specials_ : nullptr,
      [&](std::string_view part) { tokenize_plain(part, tokens); },
      [&](std::int32_t id) {
        tokens.push_back({id, vocabulary_.piece(id)});
      });
  if (options.add_special) tokens.push_back({*special_.eos, vocabulary_.piece(*special_.eos)});
  return tokens;
}

std::string PieceTableTokenizer::decode(std::span<const std::int32_t> ids,
                                        bool skip_special) const {
  // A piece of the other language is missing in this side's model, which then keeps its space
  // symbol.
  return replace_all(model_.decode(*this, ids, skip_special), kSpaceSymbol, " ");
}

std::string MarianTokenizer::kind() const { return "Marian (SentencePiece with vocab.json)"; }

void MarianTokenizer::tokenize_plain(std::string_view text, std::vector<Token>& tokens) const {
  std::string without_codes;
  if (text.find(">>") != text.npos) {
    const CodeMatch code = find_language_code(text.substr(0, text.find('\n')));
    if (code.begin == 0) {
      std::string name(text.substr(0, code.end));
      tokens.push_back({id(name).value_or(*special_.unk), std::move(name)});
    }
    without_codes = remove_language_codes(text);
    text = without_codes;
  }
  PieceTableTokenizer::tokenize_plain(text, tokens);
}

std::vector<Token> MarianTokenizer::tokenize(std::string_view text,
                                             const EncodeOptions& options) const {
  return tokenize_parts(text, options);
}

TokenizerPair load_marian_tokenizers(const Checkpoint& checkpoint) {
  const std::filesystem::path& folder = checkpoint.folder();
  bool separate = false;
  if (const Json* config = checkpoint.tokenizer_config()) {
    if (const auto it = config->find("separate_vocabs"); it != config->end() && !it->is_null()) {
      if (!it->is_boolean())
        throw ModelError((folder / "tokenizer_config.json").string(),
                         "'separate_vocabs' is neither true nor false", "download it again");
      separate = it->get<bool>();
    }
  }
  const auto source_vocab = folder / "vocab.json";
  const auto target_vocab = separate ? folder / "target_vocab.json" : source_vocab;
  const auto side = [&](const char* name, const Json& vocabulary,
                        const std::filesystem::path& where) {
    const auto path = folder / name;
    return std::make_shared<const MarianTokenizer>(
        read_sentencepiece(checkpoint.files().open(path)), path.string(), vocabulary,
        where.string());
  };
  const Json source = read_json(checkpoint.files().open(source_vocab));
  if (!separate)
    return {side("source.spm", source, source_vocab), side("target.spm", source, source_vocab)};
  return {side("source.spm", source, source_vocab),
          side("target.spm", read_json(checkpoint.files().open(target_vocab)), target_vocab)};
}

}  // namespace mulciber
