#include "text/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint.h"
#include "checkpoints/config_reader.h"
#include "mulciber/error.h"
#include "text/tokenizers/gguf.h"
#include "text/tokenizers/json.h"
#include "text/tokenizers/m2m_100.h"
#include "text/tokenizers/marian.h"
#include "text/tokenizers/sentencepiece.h"

namespace mulciber {
namespace fs = std::filesystem;
namespace {

/// Loads a SentencePiece file. tokenizer_config.json, or else the habit of the family, gives the
/// tokens around a text.
std::shared_ptr<const Tokenizer> load_sentencepiece(const Checkpoint& checkpoint,
                                                    const char* name) {
  const fs::path path = checkpoint.folder() / name;
  SentencePieceSpec spec = read_sentencepiece(checkpoint.files().open(path));
  const auto has = [&](const std::string& text) {
    return std::any_of(spec.pieces.begin(), spec.pieces.end(), [&](const Piece& piece) {
      return piece.type == PieceType::kControl && piece.text == text;
    });
  };
  const std::string model_type = checkpoint.model_type();
  const bool t5 = model_type.find("t5") != model_type.npos;
  SentencePieceTokenizer::Affixes affixes = {.bos = !t5 && has(spec.bos_piece),
                                             .eos = t5 && has(spec.eos_piece)};
  if (const Json* json = checkpoint.tokenizer_config()) {
    const ConfigReader config(*json, (checkpoint.folder() / "tokenizer_config.json").string());
    affixes.bos = config.boolean_or("add_bos_token", affixes.bos);
    affixes.eos = config.boolean_or("add_eos_token", affixes.eos);
  }
  return std::make_shared<const SentencePieceTokenizer>(std::move(spec), path.string(), affixes);
}

}  // namespace

Encoding Tokenizer::encode_pair(std::string_view, std::string_view, const EncodeOptions&) const {
  throw ModelError("tokenizer", kind() + " has no rule for a pair of texts",
                   "encode one text at a time");
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text,
                                            const EncodeOptions& options) const {
  std::vector<std::int32_t> ids;
  for (const Token& token : tokenize(text, options)) ids.push_back(token.id);
  return ids;
}

std::vector<std::string> Tokenizer::tokens(std::string_view text) const {
  std::vector<std::string> pieces;
  for (Token& token : tokenize(text, {.add_special = false}))
    pieces.push_back(std::move(token.text));
  return pieces;
}

TokenizerPair load_tokenizer_pair(const Checkpoint& checkpoint) {
  const auto both = [](std::shared_ptr<const Tokenizer> tokenizer) {
    return TokenizerPair{tokenizer, tokenizer};
  };
  if (const GgufFile* gguf = checkpoint.gguf())
    return both(std::make_shared<const GgufTokenizer>(*gguf));
  const fs::path& folder = checkpoint.folder();
  if (!checkpoint.is_folder())
    throw ModelError(checkpoint.path().string(), "is a file of tensors, without a tokenizer",
                     "give a model folder, or a GGUF file");
  const auto is_there = [&](const char* name) { return checkpoint.files().exists(folder / name); };
  if (is_there("source.spm")) return load_marian_tokenizers(checkpoint);
  if (is_there("tokenizer.json")) return both(load_json_tokenizer(checkpoint));
  if (is_there("sentencepiece.bpe.model") && checkpoint.model_type() == "m2m_100")
    return both(load_m2m_100_tokenizer(checkpoint));
  for (const char* name : {"tokenizer.model", "spiece.model"})
    if (is_there(name)) return both(load_sentencepiece(checkpoint, name));
  throw ModelError(
      folder.string(),
      "has no tokenizer: none of source.spm, tokenizer.json, tokenizer.model, spiece.model",
      "download the tokenizer's files into the model's folder");
}

std::shared_ptr<const Tokenizer> load_tokenizer(const Checkpoint& checkpoint) {
  return load_tokenizer_pair(checkpoint).source;
}

}  // namespace mulciber
