// Tokenizers compared with recorded ids.
#include "text/tokenizer.h"

#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint.h"
#include "checkpoints/json.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/support.h"
#include "text/tokenizers/m2m_100.h"
#include "text/tokenizers/marian.h"
#include "text/tokenizers/sentencepiece.h"
#include "text/tokenizers/text.h"

namespace {

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
using Ids = std::vector<std::int32_t>;
namespace fs = std::filesystem;

void check_marian_cases(const fs::path& folder) {
  const TokenizerPair pair = load_tokenizer_pair(Checkpoint(folder, Checkpoint::Contents::kText));
  const Json cases = read_json(folder / "tokenizer_cases.json");
  for (const Json& c : cases.at("cases")) {
    const auto text = c.at("text").get<std::string>();
    INFO(folder << ": " << text);
    CHECK(pair.source->encode(text) == c.at("source_ids").get<Ids>());
    CHECK(pair.source->tokens(text) == c.at("source_pieces").get<std::vector<std::string>>());
    CHECK(pair.target->encode(text) == c.at("target_ids").get<Ids>());
    CHECK(pair.target->tokens(text) == c.at("target_pieces").get<std::vector<std::string>>());
    CHECK(pair.target->decode(c.at("target_ids").get<Ids>()) ==
          c.at("decoded_target").get<std::string>());
  }
}

void check_tokenizer_json(const fs::path& folder) {
  const auto tokenizer = load_tokenizer(Checkpoint(folder, Checkpoint::Contents::kText));
  const Json cases = read_json(folder / "tokenizer_cases.json");
  CHECK(cases.at("cases").size() > 10);
  for (const Json& c : cases.at("cases")) {
    const auto text = c.at("text").get<std::string>();
    INFO(folder << ": " << text);
    const Ids plain = c.at("ids_no_special").get<Ids>();
    CHECK(tokenizer->encode(text) == c.at("ids").get<Ids>());
    CHECK(tokenizer->encode(text, {.add_special = false}) == plain);
    CHECK(tokenizer->tokens(text) == c.at("tokens_no_special").get<std::vector<std::string>>());
    CHECK(tokenizer->decode(plain, false) == c.at("decoded_no_special").get<std::string>());
  }
  const Json& pair = cases.at("pair");
  INFO(folder);
  const Encoding encoding =
      tokenizer->encode_pair(pair.at("a").get<std::string>(), pair.at("b").get<std::string>());
  CHECK(encoding.ids == pair.at("ids").get<Ids>());
  CHECK(encoding.type_ids == pair.at("type_ids").get<Ids>());
}

}  // namespace

TEST_CASE("the bundled Marian fixture tokenizes as recorded") {
  check_marian_cases(data_dir() / "marian");
}

TEST_CASE("every Marian fixture tokenizes as recorded") {
  const fs::path fixtures = fixtures_dir();
  if (fixtures.empty()) MULCIBER_SKIP("no fixtures folder (set MULCIBER_FIXTURES)");
  check_marian_cases(fixtures / "models/marian");
  check_marian_cases(fixtures / "models/marian_realistic");
}

TEST_CASE("SentencePiece files of the fixtures give the recorded ids") {
  const fs::path fixtures = fixtures_dir();
  if (fixtures.empty()) MULCIBER_SKIP("no fixtures folder (set MULCIBER_FIXTURES)");
  for (const auto& [model, file] :
       {std::pair("llama", "tokenizer.model"), std::pair("llama_realistic", "tokenizer.model"),
        std::pair("gemma3", "tokenizer.model"), std::pair("t5", "spiece.model"),
        std::pair("t5_gated", "spiece.model")}) {
    const fs::path folder = fixtures / "models" / model;
    TemporaryFolder copy;  // without tokenizer.json, which would be preferred
    for (const char* name : {file, "tokenizer_config.json", "config.json"})
      fs::copy(folder / name, copy.path() / name);
    const auto tokenizer = load_tokenizer(Checkpoint(copy.path(), Checkpoint::Contents::kText));
    const Json cases = read_json(folder / "tokenizer_cases.json");
    for (const Json& c : cases.at("cases")) {
      const auto text = c.at("text").get<std::string>();
      INFO(folder << ": " << text);
      const Ids plain =
          c.at(c.contains("sentencepiece_ids_no_special") ? "sentencepiece_ids_no_special"
                                                          : "ids_no_special")
              .get<Ids>();
      CHECK(tokenizer->encode(text, {.add_special = false}) == plain);
      if (!c.contains("sentencepiece_ids_no_special"))
        CHECK(tokenizer->encode(text) == c.at("ids").get<Ids>());
    }
  }
}

TEST_CASE("every tokenizer.json tokenizes as recorded") {
  check_tokenizer_json(data_dir() / "gemma3");
  int bundled = 0;
  for (const auto& entry : fs::directory_iterator(data_dir() / "tokenizers")) {
    check_tokenizer_json(entry.path());
    ++bundled;
  }
  CHECK(bundled == 7);
}

TEST_CASE("every tokenizer.json of the fixtures tokenizes as recorded") {
  const fs::path fixtures = fixtures_dir();
  if (fixtures.empty()) MULCIBER_SKIP("no fixtures folder (set MULCIBER_FIXTURES)");
  int models = 0;
  for (const auto& entry : fs::directory_iterator(fixtures / "models")) {
    const fs::path& folder = entry.path();
    if (!fs::exists(folder / "tokenizer.json") || !fs::exists(folder / "tokenizer_cases.json"))
      continue;
    ++models;
    check_tokenizer_json(folder);
  }
  CHECK(models >= 13);
}

TEST_CASE(
    "M2M-100's files as they are downloaded: pieces, ids of their own, and languages behind") {
  // The pieces come from another model; vocab.json gives them ids of its own.
  TemporaryFolder folder;
  fs::copy_file(source_dir() / "assets/en-de/source.spm",
                folder.path() / "sentencepiece.bpe.model");
  Json vocabulary = {{"<s>", 0u}, {"<pad>", 1u}, {"</s>", 2u}, {"<unk>", 3u}};
  const auto spm = read_sentencepiece(folder.path() / "sentencepiece.bpe.model");
  std::uint32_t next = 4;
  for (const Piece& piece : spm.pieces)
    if (piece.type == PieceType::kNormal) vocabulary[piece.text] = next++;
  const auto size = static_cast<std::int32_t>(vocabulary.size());
  write_file(folder.path() / "vocab.json", vocabulary.dump());
  write_file(folder.path() / "config.json", R"({"model_type": "m2m_100"})");
  const auto load = [&] {
    return load_tokenizer(Checkpoint(folder.path(), Checkpoint::Contents::kText));
  };
  const auto tokenizer = load();
  CHECK(tokenizer->vocab_size() == size + 108);
  CHECK(tokenizer->id("__af__") == size);
  CHECK(tokenizer->id("__zu__") == size + 99);
  CHECK(tokenizer->is_special(size + 16));
  CHECK(tokenizer->piece(size + 16) == "__de__");
  const SentencePieceModel pieces(spm, "spm");
  Ids expected = {size + 18};  // __en__
  for (const Token& token : pieces.tokenize("the house is old"))
    expected.push_back(vocabulary.value(token.text, 3));
  expected.push_back(2);
  CHECK(expected.size() > 5);
  CHECK(tokenizer->encode("the house is old") == expected);
  CHECK(tokenizer->decode(expected) == "the house is old");
  // A language token in a text is plain text, unless parse_special is set.
  CHECK(tokenizer->encode("__de__", {.add_special = false, .parse_special = false}) !=
        Ids{size + 16});
  CHECK(tokenizer->encode("__de__", {.add_special = false, .parse_special = true}) ==
        Ids{size + 16});
  write_file(folder.path() / "tokenizer_config.json", R"({"src_lang": "fr"})");
  CHECK(load()->encode("", {}).front() == *tokenizer->id("__fr__"));
  write_file(folder.path() / "tokenizer_config.json", R"({"src_lang": "tlh"})");
  CHECK_THAT(model_error([&] { load(); }).value_or("no error"),
             ContainsSubstring("'tlh' is no language"));
  fs::remove(folder.path() / "vocab.json");
  CHECK_THAT(model_error([&] { load(); }).value_or("no error"), ContainsSubstring("vocab.json"));
}
