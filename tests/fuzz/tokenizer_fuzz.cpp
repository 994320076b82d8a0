// tokenizer.json: its components, and text through them.
#include "tests/fuzz/fuzz.h"

#include <nlohmann/json.hpp>
#include "text/tokenizers/json.h"

using namespace mulciber;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::accepts([&] {
    const Json json = parse_json(fuzz::text(bytes, size), "tokenizer.json");
    const JsonTokenizer tokenizer(json, "tokenizer.json");
    fuzz::accepts([&] {
      const auto ids =
          tokenizer.encode("Hello, \xf0\x9f\x91\x8b w\xc3\xb6rld <s>\n\n 123 \xff it's");
      tokenizer.decode(ids, true);
      tokenizer.decode(ids, false);
    });
    fuzz::accepts([&] { tokenizer.encode_pair("a b", "c", {}); });
  });
  return 0;
}
