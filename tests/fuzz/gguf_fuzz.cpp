// GGUF: the container, its description, its tokenizer and its chat template.
#include "checkpoints/checkpoint.h"
#include "tests/fuzz/fuzz.h"
#include "text/chat_template.h"
#include "text/tokenizers/gguf.h"

#include <nlohmann/json.hpp>

using namespace mulciber;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile memory(bytes, size);
  fuzz::accepts([&] {
    const GgufFile file(memory.path());
    for (const auto& [key, value] : file.metadata())
      value.shown().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    // Every byte of every tensor can be read.
    for (const CheckpointTensor& tensor : file.tensors())
      for (const std::byte byte : tensor.bytes)
        static_cast<void>(*static_cast<const volatile std::byte*>(&byte));
    fuzz::accepts([&] {
      const GgufTokenizer tokenizer(file);
      tokenizer.decode(tokenizer.encode("Hello, \xf0\x9f\x91\x8b w\xc3\xb6rld <s>\n\n 123"), false);
    });
    fuzz::accepts([&] { ChatTemplate::load(Checkpoint(memory.path())); });
  });
  return 0;
}
