#include "text/tokenizers/m2m_100.h"

#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint.h"
#include "checkpoints/config_reader.h"
#include "mulciber/error.h"
#include "text/tokenizers/specials.h"

namespace mulciber {
namespace {

// Languages in the order of their ids.
constexpr const char* kLanguages[] = {
    "af", "am", "ar", "ast", "az", "ba", "be", "bg", "bn", "br",  "bs", "ca", "ceb", "cs", "cy",
    "da", "de", "el", "en",  "es", "et", "fa", "ff", "fi", "fr",  "fy", "ga", "gd",  "gl", "gu",
    "ha", "he", "hi", "hr",  "ht", "hu", "hy", "id", "ig", "ilo", "is", "it", "ja",  "jv", "ka",
    "kk", "km", "kn", "ko",  "lb", "lg", "ln", "lo", "lt", "lv",  "mg", "mk", "ml",  "mn", "mr",
    "ms", "my", "ne", "nl",  "no", "ns", "oc", "or", "pa", "pl",  "ps", "pt", "ro",  "ru", "sd",
    "si", "sk", "sl", "so",  "sq", "sr", "ss", "su", "sv", "sw",  "ta", "th", "tl",  "tn", "tr",
    "uk", "ur", "uz", "vi",  "wo", "xh", "yi", "yo", "zh", "zu"};
static_assert(std::size(kLanguages) == 100);
// Ids with rows in the embedding that the model never saw in training.
constexpr int kUnused = 8;

std::string language_piece(const std::string& language) { return "__" + language + "__"; }

/// Adds the ids after the table's own.
Json with_languages(Json vocabulary, const std::string& where) {
  if (!vocabulary.is_object())
    throw ModelError(where, "is no table of pieces and ids", "download it again");
  auto id = static_cast<std::uint64_t>(vocabulary.size());
  for (const char* language : kLanguages) vocabulary[language_piece(language)] = id++;
  for (int i = 0; i < kUnused; ++i) vocabulary["madeupword000" + std::to_string(i)] = id++;
  return vocabulary;
}

}  // namespace

M2m100Tokenizer::M2m100Tokenizer(SentencePieceSpec spec, const std::string& spec_where,
                                 Json vocabulary, const std::string& language,
                                 const std::string& where)
    : PieceTableTokenizer(std::move(spec), spec_where, with_languages(std::move(vocabulary), where),
                          where) {
  first_language_ = *id(language_piece(kLanguages[0]));
  const std::optional<std::int32_t> found = id(language_piece(language));
  if (!found)
    throw ModelError("src_lang", "'" + language + "' is no language of M2M-100",
                     "give a code such as en or de");
  language_ = *found;
  std::vector<std::string> pieces;
  for (std::int32_t special = first_language_; special < vocab_size(); ++special)
    pieces.emplace_back(piece(special));
  add_specials(pieces);
}

bool M2m100Tokenizer::is_special(std::int32_t id) const {
  return PieceTableTokenizer::is_special(id) || (id >= first_language_ && id < vocab_size());
}

std::vector<Token> M2m100Tokenizer::tokenize(std::string_view text,
                                             const EncodeOptions& options) const {
  std::vector<Token> tokens;
  if (options.add_special) tokens.push_back({language_, std::string(piece(language_))});
  for (Token& token : tokenize_parts(text, options)) tokens.push_back(std::move(token));
  return tokens;
}

std::shared_ptr<const Tokenizer> load_m2m_100_tokenizer(const Checkpoint& checkpoint) {
  const std::filesystem::path& folder = checkpoint.folder();
  const auto pieces = folder / "sentencepiece.bpe.model", ids = folder / "vocab.json";
  std::string language = "en";
  if (const Json* json = checkpoint.tokenizer_config())
    language = ConfigReader(*json, (folder / "tokenizer_config.json").string())
                   .text_or("src_lang", language);
  const ModelFiles& files = checkpoint.files();
  return std::make_shared<const M2m100Tokenizer>(read_sentencepiece(files.open(pieces)),
                                                 pieces.string(), read_json(files.open(ids)),
                                                 language, ids.string());
}

}  // namespace mulciber
