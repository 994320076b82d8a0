// Text as tokens come: never half a character, and no part of a stop text.
#include "text/token_stream.h"

#include "mulciber/error.h"
#include "tests/catch.h"

using namespace mulciber;

namespace {

/// A tokenizer with one id per byte. With `valid`, decode() replaces invalid UTF-8, as byte-level
/// decoders do.
class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(bool valid) : valid_(valid) {}
  std::string kind() const override { return "bytes"; }
  std::int32_t vocab_size() const override { return 256; }
  std::string_view piece(std::int32_t) const override { return ""; }
  std::optional<std::int32_t> id(std::string_view) const override { return std::nullopt; }
  bool is_special(std::int32_t) const override { return false; }
  std::vector<Token> tokenize(std::string_view, const EncodeOptions&) const override { return {}; }
  std::string decode(std::span<const std::int32_t> ids, bool) const override {
    std::string text;
    for (size_t i = 0; i < ids.size();) {
      const auto byte = static_cast<unsigned>(ids[i]);
      const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      const bool whole = i + length <= ids.size() && (byte < 0x80 || byte >= 0xc0);
      if (valid_ && !whole) {
        text += "\xef\xbf\xbd";
        ++i;
        continue;
      }
      for (size_t end = std::min(i + length, ids.size()); i < end; ++i)
        text += static_cast<char>(ids[i]);
    }
    return text;
  }

 private:
  bool valid_;
};

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const std::string& text) {
  TokenStream stream(tokenizer, std::vector<std::int32_t>{'a', 'b'});
  std::vector<std::string> pieces;
  for (char c : text) {
    const std::string piece = stream.push(static_cast<unsigned char>(c));
    if (!piece.empty()) pieces.push_back(piece);
  }
  if (const std::string rest = stream.finish(); !rest.empty()) pieces.push_back(rest);
  return pieces;
}

}  // namespace

TEST_CASE("Characters of several tokens come whole") {
  for (bool valid : {false, true}) {
    const ByteTokenizer tokenizer(valid);
    CHECK(pieces_of(tokenizer, "aé€😀!") == std::vector<std::string>{"a", "é", "€", "😀", "!"});
    CHECK(pieces_of(tokenizer, "") == std::vector<std::string>{});
  }
}

TEST_CASE("Bytes that never become a character come at the end") {
  CHECK(pieces_of(ByteTokenizer(false), "x\xe2\x82") == std::vector<std::string>{"x", "\xe2\x82"});
}

TEST_CASE("Ids behind the last token are no text") {
  const ByteTokenizer tokenizer(true);
  TokenStream stream(tokenizer, std::vector<std::int32_t>{'a', 300});
  std::string text;
  for (const std::int32_t id : {0xc3, 256, 0xa9, 1000, int{'b'}}) text += stream.push(id);
  CHECK(text + stream.finish() ==
        "\xc3\xa9"
        "b");
  CHECK(written_text(tokenizer, std::vector<std::int32_t>{'x', 256, 'y'}) == "xy");
  CHECK(token_text(tokenizer, 256).empty());
}

TEST_CASE("A stop text is held back until it is certain") {
  StopFilter filter({"END", "\n\n"});
  CHECK(filter.push("one E") == "one ");
  CHECK(filter.push("N") == "");
  CHECK(filter.push("V") == "ENV");
  CHECK(filter.push("\n") == "");
  CHECK(filter.push("x E") == "\nx ");
  CHECK(filter.push("ND and more") == "");
  CHECK(filter.stopped());
  CHECK(filter.push("later") == "");
  CHECK(filter.finish() == "");
  StopFilter open({"END"});
  CHECK(open.push("the EN") == "the ");
  CHECK(open.finish() == "EN");
  StopFilter none({""});
  CHECK(none.push("all") == "all");
}
