// Malformed and hostile tokenizer files.
#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "text/tokenizers/charsmap.h"
#include "text/tokenizers/json.h"
#include "text/tokenizers/marian.h"
#include "text/tokenizers/sentencepiece.h"
#include "text/tokenizers/text.h"

namespace {

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
using Ids = std::vector<std::int32_t>;

// Protocol buffers, written by hand.
std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string bytes_field(int number, const std::string& payload) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(payload.size()) + payload;
}
std::string number_field(int number, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}
std::string piece(const std::string& text, float score, int type) {
  std::string real(4, '\0');
  std::memcpy(real.data(), &score, 4);
  return bytes_field(1, bytes_field(1, text) + varint(2 << 3 | 5) + real +
                            number_field(3, static_cast<std::uint64_t>(type)));
}

std::string small_unigram(const std::string& extra = "") {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\u2581", -2, 1) +
         piece("a", -1, 1) + piece("ab", -1.5F, 1) + piece("\u2581ab", -3, 1) + extra;
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

SentencePieceModel model_of(const std::string& file) {
  return SentencePieceModel(parse_sentencepiece(as_bytes(file), "x.spm"), "x.spm");
}

std::string refusal(const std::function<void()>& action) {
  return model_error(action).value_or("");
}
std::string spm_refusal(const std::string& file) {
  return refusal([&] { model_of(file).tokenize("a b\xff"); });
}

/// A table of one block: `label` leads from the root to a node whose value is `value`.
std::string charsmap(unsigned char label, std::uint32_t value, const std::string& replacements) {
  std::vector<std::uint32_t> units(256, 0x80000000U);
  const std::uint32_t root_base = 1;  // root at 0, its children at 1 ^ label
  const std::uint32_t child = root_base ^ label;
  const std::uint32_t leaf = child ^ 2;  // the child's base
  units[0] = root_base << 10;
  units[child] = 2U << 10 | 1U << 8 | label;
  units[leaf] = 0x80000000U | value;
  const std::uint32_t size = 1024;
  std::string blob(4 + size, '\0');
  std::memcpy(blob.data(), &size, 4);
  std::memcpy(blob.data() + 4, units.data(), size);
  return blob + replacements;
}

const char* kBpe = R"({
  "added_tokens": [{"id": 6, "content": "<x>", "special": true}],
  "normalizer": {"type": "Lowercase"},
  "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Removed"},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<x>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [], "special_tokens": {"<x>": {"id": "<x>", "ids": [6]}}},
  "decoder": {"type": "Replace", "pattern": {"String": "_"}, "content": " "},
  "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "abc": 5},
            "merges": ["a b", ["ab", "c"]]}})";

/// The message for the document above with `change` made to it.
std::string json_refusal(const std::function<void(Json&)>& change) {
  Json json = Json::parse(kBpe);
  change(json);
  return refusal([&] {
    const JsonTokenizer made(json, "tokenizer.json");
    const Tokenizer& tokenizer = made;
    const Ids ids =
        tokenizer.encode("Abc <x> d aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!");
    tokenizer.decode(ids);
  });
}

}  // namespace

TEST_CASE("a small unigram model finds the best path") {
  const SentencePieceModel model = model_of(small_unigram());
  const auto pieces = [&](const char* text) {
    std::string all;
    for (const Token& token : model.tokenize(text)) all += token.text + "|";
    return all;
  };
  CHECK(pieces("ab") == "\u2581ab|");
  CHECK(pieces("a  ab") == "\u2581|a|\u2581ab|");
  CHECK(pieces("zz") == "\u2581|zz|");
  CHECK(pieces("") == "");
  CHECK(pieces("   ") == "");
  CHECK(pieces("a\xff\xfe") == "\u2581|a|\uFFFD\uFFFD|");
  const std::vector<std::string_view> decoded = {"\u2581ab", "\u2581", "a", "<unk>", "</s>", "q"};
  CHECK(model.decode(decoded) == "ab a \u2047 q");
}

TEST_CASE("user-defined, unused and byte pieces") {
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes += piece(piece_of_byte(static_cast<unsigned char>(b)), 0, 6);
  const SentencePieceModel model =
      model_of(small_unigram(piece("<sep>", 0, 4) + piece("aab", -0.1F, 5) + bytes) +
               bytes_field(2, number_field(35, 1)));
  std::string all;
  for (const Token& token : model.tokenize("aab<sep>\u00e9")) all += token.text + "|";
  CHECK(all == "\u2581|a|ab|<sep>|<0xC3>|<0xA9>|");
  const std::vector<std::string_view> decoded = {"<0xC3>", "<0xA9>", "<0xC3>", "a"};
  CHECK(model.decode(decoded) == "\u00e9\uFFFDa");
}

TEST_CASE("SentencePiece BPE takes unused pieces apart again") {
  const std::string bpe = bytes_field(2, number_field(3, 2));
  const SentencePieceModel model =
      model_of(piece("<unk>", 0, 2) + piece("a", -9, 1) + piece("b", -9, 1) + piece("ab", -1, 5) +
               piece("abb", -2, 5) + piece("bb", -3, 1) + bpe + bytes_field(3, number_field(3, 0)));
  std::string all;
  for (const Token& token : model.tokenize("abbabb")) all += token.text + "|";
  CHECK(all == "a|b|b|a|b|b|");
}

TEST_CASE("a malformed SentencePiece file is refused") {
  REQUIRE(spm_refusal(small_unigram()) == "");
  CHECK_THAT(spm_refusal(""), ContainsSubstring("x.spm") && ContainsSubstring("no pieces"));
  CHECK_THAT(spm_refusal(piece("a", 0, 1)), ContainsSubstring("0 unknown pieces"));
  CHECK_THAT(spm_refusal(small_unigram(piece("?", 0, 2))), ContainsSubstring("2 unknown pieces"));
  CHECK_THAT(spm_refusal(small_unigram(piece("ab", 0, 1))), ContainsSubstring("'ab' twice"));
  CHECK_THAT(spm_refusal(small_unigram(piece("", 0, 1))), ContainsSubstring("empty"));
  CHECK_THAT(spm_refusal(small_unigram(piece("\xc3", 0, 1))), ContainsSubstring("\\xc3"));
  CHECK_THAT(spm_refusal(small_unigram(piece("q", NAN, 1))), ContainsSubstring("finite"));
  CHECK_THAT(spm_refusal(small_unigram(piece("q", 0, 9))), ContainsSubstring("type 9"));
  CHECK_THAT(spm_refusal(small_unigram(piece("<0xZZ>", 0, 6))), ContainsSubstring("<0xZZ>"));
  CHECK_THAT(spm_refusal(small_unigram() + bytes_field(2, number_field(35, 1))),
             ContainsSubstring("256"));
  CHECK_THAT(spm_refusal(small_unigram() + bytes_field(2, number_field(3, 4))),
             ContainsSubstring("algorithm 4"));
  CHECK_THAT(spm_refusal(number_field(1, 7)), ContainsSubstring("wire type 0 instead of 2"));
  CHECK_THAT(spm_refusal(varint(1 << 3 | 2) + varint(std::uint64_t{1} << 62)),
             ContainsSubstring("4611686018427387904"));
  CHECK_THAT(spm_refusal(varint(1 << 3 | 3)), ContainsSubstring("wire type 3"));
  CHECK_THAT(spm_refusal(std::string(11, '\xff')), ContainsSubstring("10 bytes"));
  CHECK_THAT(spm_refusal(std::string(1, '\0')), ContainsSubstring("number 0"));
}

TEST_CASE("a SentencePiece file cut or damaged anywhere ends in an error or still works") {
  const std::string whole =
      small_unigram() + bytes_field(3, bytes_field(2, charsmap('b', 0, std::string("ab\0", 3))));
  REQUIRE(spm_refusal(whole) == "");
  int refused = 0;
  for (std::size_t length = 0; length < whole.size(); ++length)
    refused += !spm_refusal(whole.substr(0, length)).empty();
  CHECK(refused > 1000);  // a cut between two fields leaves a valid file
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    spm_refusal(damaged);  // sanitizers judge the result
  }
}

TEST_CASE("a normalization table is checked before use") {
  const CharsMap map(charsmap('x', 0, std::string("yz\0", 3)), "t");
  CHECK(map.longest_prefix("xa").replacement == "yz");
  CHECK(map.longest_prefix("xa").length == 1);
  CHECK(map.longest_prefix("a").length == 0);
  CHECK(map.longest_prefix("").length == 0);
  CHECK(CharsMap("", "t").longest_prefix("x").length == 0);

  const auto table_refusal = [](const std::string& blob) {
    return refusal([&] { CharsMap table(blob, "t"); });
  };
  const std::string end(1, '\0');
  CHECK_THAT(table_refusal("abc"), ContainsSubstring("cut short"));
  CHECK_THAT(table_refusal(std::string(4, '\xff') + "a"), ContainsSubstring("4294967295"));
  CHECK_THAT(table_refusal(std::string(8, '\0')), ContainsSubstring("multiple of 1024"));
  CHECK_THAT(table_refusal(charsmap('x', 0, "yz")), ContainsSubstring("without end"));
  CHECK_THAT(table_refusal(charsmap('x', 1, end)), ContainsSubstring("outside the replacements"));
  CHECK_THAT(table_refusal(charsmap('x', 0x7FFFFFFF, end)),
             ContainsSubstring("outside the replacements"));
  CHECK_THAT(table_refusal(charsmap('x', 0, std::string(1025, 'y') + end)),
             ContainsSubstring("longer than 1024"));
  CHECK(table_refusal(charsmap('x', 0, std::string(1024, 'y') + end)) == "");
  for (const std::uint32_t unit : {0xFFFFFFFFU, 0x7FFFFF00U, 1U << 18, 0x00000200U | 1U << 20}) {
    std::string blob = charsmap('x', 0, end);
    std::memcpy(blob.data() + 4, &unit, 4);  // the root
    INFO(unit);
    CHECK_THAT(table_refusal(blob), ContainsSubstring("outside the trie"));
  }
  // A node that leads back to itself costs one step per byte of the text, like any other.
  std::string loop = charsmap('x', 0, end);
  const std::uint32_t unit = std::uint32_t{'x'} << 10 | 'x';
  std::memcpy(loop.data() + 4 + 4 * (1 ^ 'x'), &unit, 4);
  const CharsMap looping(loop, "t");
  CHECK(looping.longest_prefix(std::string(1000, 'x')).length == 0);
}

TEST_CASE("a malformed tokenizer.json is refused by component") {
  REQUIRE(json_refusal([](Json&) {}) == "");
  const auto set = [](const char* pointer, const Json& value) {
    return json_refusal([&](Json& json) { json[Json::json_pointer(pointer)] = value; });
  };
  CHECK_THAT(set("/model/merges/0", "a z"), ContainsSubstring("needs the piece 'z'"));
  CHECK_THAT(set("/model/merges/0", "b a"), ContainsSubstring("needs the piece 'ba'"));
  CHECK_THAT(set("/model/merges/0", "a  b"), ContainsSubstring("not two pieces"));
  CHECK_THAT(set("/model/merges/0", "ab"), ContainsSubstring("not two pieces"));
  CHECK_THAT(set("/model/merges/0", 7), ContainsSubstring("not a pair"));
  CHECK_THAT(set("/model/merges", "a b"), ContainsSubstring("a list is expected"));
  CHECK_THAT(set("/model/merges", nullptr), ContainsSubstring("missing"));
  CHECK_THAT(set("/model/vocab/a", -1), ContainsSubstring("'a' the id -1"));
  CHECK_THAT(set("/model/vocab/a", 2U), ContainsSubstring("the id 2 to"));
  CHECK_THAT(set("/model/vocab/a", 1000000000U), ContainsSubstring("1000000000"));
  CHECK_THAT(set("/model/vocab/a", "1"), ContainsSubstring("'a'"));
  CHECK_THAT(set("/model/vocab", Json::array()), ContainsSubstring("no object of pieces"));
  CHECK_THAT(set("/model/type", "Telepathy"),
             ContainsSubstring("'Telepathy', which is not supported"));
  CHECK_THAT(set("/model", 3), ContainsSubstring("tokenizer.json: model: is not a JSON object"));
  CHECK_THAT(set("/model/ignore_merges", 1), ContainsSubstring("true or false"));
  CHECK_THAT(set("/added_tokens/0/id", -1), ContainsSubstring("'id'"));
  CHECK_THAT(set("/added_tokens/0/id", 1 << 24), ContainsSubstring("'id'"));
  CHECK_THAT(set("/added_tokens/0/id", 3), ContainsSubstring("the vocabulary has 'c' there"));
  CHECK_THAT(set("/added_tokens/0/content", "abc"), ContainsSubstring("has it at 5"));
  CHECK_THAT(set("/added_tokens/0/content", ""), ContainsSubstring("empty"));
  CHECK_THAT(set("/added_tokens/1", {{"id", 6}, {"content", "<y>"}}),
             ContainsSubstring("the id 6"));
  CHECK_THAT(set("/post_processor/special_tokens/<x>/ids/0", 99),
             ContainsSubstring("outside the vocabulary of 7"));
  CHECK_THAT(set("/post_processor/special_tokens", Json::object()),
             ContainsSubstring("'<x>' is missing"));
  CHECK_THAT(set("/post_processor/single/1/Sequence/id", "C"),
             ContainsSubstring("neither A nor B"));
  CHECK_THAT(set("/post_processor/type", "x"), ContainsSubstring("not supported"));
  CHECK_THAT(set("/post_processor",
                 {{"type", "BertProcessing"}, {"cls", {"c", Json::array()}}, {"sep", {"s", 1}}}),
             ContainsSubstring("'cls'"));
  CHECK_THAT(set("/normalizer/type", "x"),
             ContainsSubstring("normalizer") && ContainsSubstring("not supported"));
  CHECK_THAT(set("/decoder/type", 1), ContainsSubstring("text is expected"));
  CHECK_THAT(set("/decoder/pattern", {{"String", ""}}), ContainsSubstring("empty"));
  CHECK_THAT(set("/pre_tokenizer/pattern", {{"Regex", "(a"}}),
             ContainsSubstring("does not compile"));
  CHECK_THAT(set("/pre_tokenizer/pattern", {{"Regex", "[a&&[b]]"}}),
             ContainsSubstring("intersects"));
  CHECK_THAT(set("/pre_tokenizer/pattern", {{"Regex", "(a*)*(a*)*!!"}}),
             ContainsSubstring("regular expression"));
  CHECK(set("/pre_tokenizer/pattern", {{"Regex", "a\\Kb|x*"}}) == "");
  CHECK(set("/pre_tokenizer/pattern", {{"Regex", ""}}) == "");
  CHECK_THAT(
      set("/pre_tokenizer/pattern", {{"Regex", std::string(2000, '(') + std::string(2000, ')')}}),
      ContainsSubstring("does not compile"));
  CHECK_THAT(set("/normalizer", {{"type", "Replace"},
                                 {"pattern", {{"String", "a"}}},
                                 {"content", std::string(100000, 'a')}}),
             ContainsSubstring("64 times"));
  CHECK_THAT(set("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "!!"}}),
             ContainsSubstring("base64"));
  CHECK_THAT(set("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}}),
             ContainsSubstring("cut short"));
  CHECK_THAT(set("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}}),
             ContainsSubstring("one character"));
  Json nested = {{"type", "NFC"}};
  for (int i = 0; i < 10; ++i)
    nested = {{"type", "Sequence"}, {"normalizers", Json::array({nested})}};
  CHECK(set("/normalizer", nested) == "");
  CHECK_THAT(refusal([] { JsonTokenizer(Json::array(), "tokenizer.json"); }),
             ContainsSubstring("not a JSON object"));
}

TEST_CASE("a Unigram tokenizer.json is checked") {
  const auto unigram = [](const char* model) {
    return refusal([&] {
      const JsonTokenizer tokenizer(Json{{"model", Json::parse(model)}}, "tokenizer.json");
      tokenizer.encode("ab z");
    });
  };
  CHECK(unigram(R"({"type":"Unigram","unk_id":0,"vocab":[["?",0],["a",-1],["a",-2]]})") == "");
  CHECK_THAT(unigram(R"({"type":"Unigram","unk_id":3,"vocab":[["?",0],["a",-1]]})"),
             ContainsSubstring("unk_id"));
  CHECK_THAT(unigram(R"({"type":"Unigram","unk_id":0,"vocab":[]})"), ContainsSubstring("unk_id"));
  CHECK_THAT(unigram(R"({"type":"Unigram","vocab":[["a",-1]]})"),
             ContainsSubstring("no unknown token"));
  CHECK_THAT(unigram(R"({"type":"Unigram","vocab":[["a"]]})"), ContainsSubstring("not a pair"));
  CHECK_THAT(unigram(R"({"type":"Unigram","vocab":[["a","b"]]})"), ContainsSubstring("not a pair"));
  CHECK_THAT(unigram(R"({"type":"WordPiece","vocab":{"a":0}})"), ContainsSubstring("unk_token"));
}

TEST_CASE("every bit of a tokenizer.json may flip") {
  const std::string whole = kBpe;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    refusal([&] {
      const Json json = parse_json(damaged, "tokenizer.json");
      const JsonTokenizer made(json, "tokenizer.json");
      const Tokenizer& tokenizer = made;
      tokenizer.decode(tokenizer.encode("Abc <x> d"));
    });
  }
}

TEST_CASE("ids outside the vocabulary are refused, wherever they come from") {
  const Json json = Json::parse(kBpe);
  const JsonTokenizer made(json, "tokenizer.json");
  const Tokenizer& tokenizer = made;
  CHECK(tokenizer.vocab_size() == 7);
  for (const std::int32_t id : {-1, 7, INT32_MAX, INT32_MIN}) {
    CHECK_THAT(refusal([&] { tokenizer.decode(Ids{id}); }),
               ContainsSubstring("outside the vocabulary of 7"));
    CHECK_THAT(refusal([&] { tokenizer.piece(id); }), ContainsSubstring("outside"));
    CHECK_FALSE(tokenizer.is_special(id));
  }
}

TEST_CASE("a Marian vocabulary is checked") {
  const auto spec = [] { return parse_sentencepiece(as_bytes(small_unigram()), "source.spm"); };
  const auto vocabulary = [&](const char* json) {
    return refusal([&] { MarianTokenizer(spec(), "source.spm", Json::parse(json), "vocab.json"); });
  };
  CHECK(vocabulary(R"({"</s>":0,"<unk>":1,"a":2})") == "");
  CHECK_THAT(vocabulary(R"({"</s>":0,"a":1})"),
             ContainsSubstring("vocab.json: lacks <unk> or </s>"));
  CHECK_THAT(vocabulary(R"({"</s>":0,"<unk>":0})"), ContainsSubstring("the id 0 to"));
  CHECK_THAT(vocabulary(R"({"</s>":0,"<unk>":9999999})"), ContainsSubstring("9999999"));
  CHECK_THAT(vocabulary(R"({"</s>":0,"<unk>":[[1]]})"), ContainsSubstring("array"));
  CHECK_THAT(vocabulary("[]"), ContainsSubstring("no object"));
}

TEST_CASE("language codes stand for one piece") {
  const Json vocabulary =
      Json::parse(R"({"</s>":0,"<unk>":1,">>de<<":2,"\u2581ab":3,"\u2581":4,"a":5})");
  const MarianTokenizer made(parse_sentencepiece(as_bytes(small_unigram()), "s"), "s", vocabulary,
                             "v");
  const Tokenizer& tokenizer = made;
  CHECK(tokenizer.encode(">>de<< ab") == Ids{2, 3, 0});
  CHECK(tokenizer.encode(">>fr<< ab") == Ids{1, 3, 0});
  CHECK(tokenizer.encode("ab >>de<<") == Ids{3, 0});
  CHECK(tokenizer.encode("ab</s>ab") == Ids{3, 0, 3, 0});
  CHECK(tokenizer.encode("", {.add_special = false}).empty());
  CHECK(tokenizer.decode(Ids{3, 5, 0}) == "aba");
  CHECK(tokenizer.decode(Ids{3, 0}, false) == "ab</s>");
}
