// The names in tokenizer.ggml.pre: where each cuts a text into words, compared with Hugging Face's
// tokenizers on the reference expressions (tools/fixtures/pre_tokenizers.py), and the other
// settings that a name stands for.
#include <nlohmann/json.hpp>

#include <set>

#include "tests/catch.h"
#include "tests/gguf_bytes.h"
#include "tests/support.h"
#include "text/tokenizers/gguf.h"
#include "text/tokenizers/gguf_pre.h"
#include "text/tokenizers/pipeline.h"

using namespace mulciber;
using nlohmann::json;

namespace {

using Ids = std::vector<std::int32_t>;

/// A tokenizer of a few pieces, with ids from 0, for one name in tokenizer.ggml.pre.
class SmallTokenizer {
 public:
  explicit SmallTokenizer(const std::string& pre) {
    bytes_.counts(0, 7);
    bytes_.key("tokenizer.ggml.model", GgufType::kString).text("gpt2");
    bytes_.key("tokenizer.ggml.pre", GgufType::kString).text(pre);
    texts("tokenizer.ggml.tokens", {"<s>", "</s>", "h", "i", "hi", "!", "\u0120", "\u2581", "\n",
                                    "\n\n", "<0xC3>", "<0xA9>"});
    texts("tokenizer.ggml.merges", {});
    bytes_.key("tokenizer.ggml.token_type", GgufType::kArray)
        .number(static_cast<std::uint32_t>(GgufType::kI32))
        .number<std::uint64_t>(12);
    for (const std::int32_t type : {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 6, 6}) bytes_.number(type);
    bytes_.key("tokenizer.ggml.bos_token_id", GgufType::kU32).number<std::uint32_t>(0);
    bytes_.key("tokenizer.ggml.seperator_token_id", GgufType::kU32).number<std::uint32_t>(1);
    bytes_.align();
  }

  GgufTokenizer open() const { return GgufTokenizer(GgufFile(bytes_.write())); }

 private:
  void texts(const std::string& key, const std::vector<std::string>& values) {
    bytes_.key(key, GgufType::kArray)
        .number(static_cast<std::uint32_t>(GgufType::kString))
        .number<std::uint64_t>(values.size());
    for (const std::string& value : values) bytes_.text(value);
  }

  tests::GgufBytes bytes_;
};

}  // namespace

TEST_CASE("Every pre-tokenizer of GGUF files cuts words as its reference expression does") {
  std::ifstream stream(tests::data_dir() / "pre_tokenizers.json");
  const json reference = json::parse(stream);
  const auto texts = reference["texts"].get<std::vector<std::string>>();
  CHECK(texts.size() > 30);
  std::set<std::string> compared;
  for (const json& rule : reference["rules"]) {
    for (const json& name : rule["names"]) {
      INFO("tokenizer.ggml.pre " << name);
      const GgufPreTokenizer* rules = find_gguf_pre_tokenizer(name.get<std::string>());
      REQUIRE(rules != nullptr);
      const WordCutter cutter(*rules, "the table");
      for (std::size_t i = 0; i < texts.size(); ++i) {
        INFO("text " << i << ": " << texts[i]);
        std::vector<std::string> expected, words;
        std::size_t at = 0;
        for (const std::size_t length : rule["cuts"][i].get<std::vector<std::size_t>>()) {
          expected.push_back(texts[i].substr(at, length));
          at += length;
        }
        for (const std::string_view word : cutter.cut(texts[i])) words.emplace_back(word);
        CHECK(words == expected);
      }
      compared.insert(name.get<std::string>());
    }
  }
  for (const GgufPreTokenizer& rules : gguf_pre_tokenizers())
    for (const std::string_view name : rules.names) {
      INFO(name);
      CHECK(compared.erase(std::string(name)) == 1);
    }
  CHECK(compared.empty());
}

TEST_CASE("A pre-tokenizer's name says what is added, and which words are taken whole") {
  // There are no merges: a piece of two characters comes out only where words are taken whole.
  const Ids merged = {2, 3}, whole = {4}, with_bos = {0, 4}, with_separator = {2, 3, 1};
  CHECK(SmallTokenizer("gpt-4o").open().encode("hi", {true, false}) == merged);
  CHECK(SmallTokenizer("youtu").open().encode("hi", {true, false}) == whole);
  CHECK(SmallTokenizer("tekken").open().encode("hi", {true, false}) == with_bos);
  CHECK(SmallTokenizer("pixtral").open().encode("hi", {true, false}) == with_bos);
  CHECK(SmallTokenizer("roberta-bpe").open().encode("hi", {true, false}) == with_separator);
  CHECK(SmallTokenizer("roberta-bpe").open().encode("hi", {false, false}) == merged);
}

TEST_CASE("A pre-tokenizer's name says whether decoding joins punctuation") {
  const Ids ids = {4, 6, 5};  // "hi !"
  CHECK(SmallTokenizer("falcon").open().decode(ids, true) == "hi!");
  CHECK(SmallTokenizer("default").open().decode(ids, true) == "hi!");
  CHECK(SmallTokenizer("deepseek-coder").open().decode(ids, true) == "hi !");
  CHECK(SmallTokenizer("smollm").open().decode(ids, true) == "hi !");
}

TEST_CASE("Pieces of plain text take spaces as a symbol and other characters by their bytes") {
  const GgufTokenizer gemma = SmallTokenizer("gemma4").open();
  const Ids ids = {2, 3, 7, 5, 10, 11};
  CHECK(gemma.encode("hi !\u00e9", {false, false}) == ids);
  CHECK(gemma.decode(ids, true) == "hi!\u00e9");
  CHECK(gemma.encode("hi", {true, false}) == Ids{0, 2, 3});
  CHECK(gemma.encode("\n\nh", {false, false}) == Ids{9, 2});
  const GgufTokenizer sarvam = SmallTokenizer("sarvam-moe").open();
  CHECK(sarvam.encode("\n\nh", {false, false}) == Ids{8, 8, 2});
  CHECK(sarvam.decode(ids, true) == "hi !\u00e9");
}

TEST_CASE("A pre-tokenizer that is not known is refused by its name, with what to do") {
  const SmallTokenizer file("klingon");
  CHECK_THROWS_WITH(
      file.open(),
      Catch::Matchers::ContainsSubstring(
          "'tokenizer.ggml.pre' is 'klingon', a pre-tokenizer that this version does not know") &&
          Catch::Matchers::ContainsSubstring("use the model's Hugging Face folder"));
}

TEST_CASE("A split of tokenizer.json also parts words where its expression matches nothing") {
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", R"((?=(\d{3})+(?!\d)))"}}},
                      {"behavior", "Isolated"}};
  const Json whole = Json::object();
  const PreTokenizer cut = read_pre_tokenizer(split, ConfigReader(whole, "tokenizer.json"));
  std::vector<Word> words = {{"a1234567 b", true}};
  cut(words);
  std::vector<std::string> texts;
  for (const Word& word : words) texts.push_back(word.text);
  CHECK(texts == std::vector<std::string>{"a1", "234", "567 b"});
  CHECK(words[0].at_start);
  CHECK_FALSE(words[1].at_start);
}
