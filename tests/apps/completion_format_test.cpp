// Token records that clients get: the bytes of the tokens add up to the text.
#include "apps/serve/api/completion_format.h"

#include "checkpoints/checkpoint.h"
#include "tests/catch.h"
#include "tests/support.h"
#include "text/tokenizer.h"

using namespace mulciber;
using namespace mulciber::apps::serve;
using namespace mulciber::tests;

TEST_CASE("The bytes of tokens are those of their text, where tokens are parts of characters") {
  const std::string name = GENERATE("gpt2", "qwen2", "roberta", "whisper", "llama");
  INFO(name);
  const std::shared_ptr<const Tokenizer> tokenizer =
      load_tokenizer(Checkpoint(data_dir() / "tokenizers" / name, Checkpoint::Contents::kText));
  for (const char* text : {"é漢字 “q” – 😀 and 👍🏽b\n", "漢", "a 漢a", "😀😀"}) {
    INFO(text);
    const std::vector<int32_t> ids = tokenizer->encode(text, {.add_special = false});
    TokenTexts texts(tokenizer);
    std::string bytes;
    for (const int32_t id : ids) {
      const TokenRecord token = texts.next(static_cast<uint32_t>(id), 0.0f, {});
      // The blank that SentencePiece puts in front is not part of the text.
      if (name != "llama") CHECK_FALSE(token.bytes.empty());
      bytes += token.bytes;
    }
    CHECK(bytes == tokenizer->decode(ids, false));
  }
}
