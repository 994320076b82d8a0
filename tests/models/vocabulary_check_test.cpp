// Tokenizers whose size differs from the embedding's.
#include "models/core/vocabulary_check.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/support.h"
#include "text/tokenizers/json.h"

using namespace mulciber;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Three pieces, and two added tokens after them, the first of which is listed among the pieces.
JsonTokenizer small_tokenizer() {
  return JsonTokenizer(Json::parse(R"({"model": {"type": "WordLevel", "unk_token": "a",
                                "vocab": {"a": 0, "b": 1, "c": 2, "<pad>": 3}},
                      "pre_tokenizer": {"type": "WhitespaceSplit"},
                      "added_tokens": [{"id": 3, "content": "<pad>", "special": true},
                                       {"id": 4, "content": "<mine>", "special": false}]})"),
                       "tokenizer.json");
}

}  // namespace

TEST_CASE("Pieces beyond the embedding are refused with both numbers") {
  const JsonTokenizer tokenizer = small_tokenizer();
  CHECK(tokenizer.vocab_size() == 5);
  CHECK(tokenizer.base_size() == 3);
  CHECK_THROWS_WITH(check_vocabulary(tokenizer, 2, "model.safetensors"),
                    ContainsSubstring("model.safetensors: has a tokenizer of 3 tokens and an "
                                      "embedding of 2 rows") &&
                        ContainsSubstring("download both from one revision"));
  // Spare rows are common, and so are added tokens without rows.
  CHECK_NOTHROW(check_vocabulary(tokenizer, 3, "model.safetensors"));
  CHECK_NOTHROW(check_vocabulary(tokenizer, 64, "model.safetensors"));
}
