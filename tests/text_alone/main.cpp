// Prints the ids of a text and of a conversation, using only the room of texts and the two below
// it: no Vulkan is linked. FOLDER holds the tokenizer's files, TEMPLATE a chat template.
#include <cstdio>
#include <exception>
#include <string>

#include "checkpoints/checkpoint.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

int main(int argc, char** argv) {
  using namespace mulciber;
  if (argc != 4) {
    std::fputs("text_alone FOLDER TEMPLATE TEXT\n", stderr);
    return 2;
  }
  try {
    const std::string text = argv[3];
    const Checkpoint files(argv[1], Checkpoint::Contents::kText);
    const auto tokenizer = load_tokenizer(files);
    const ChatTemplate chat = ChatTemplate::choose(argv[2], files);
    const ChatMessage message{"user", text};
    for (const auto& ids : {tokenizer->encode(text), chat_ids(*tokenizer, chat, {&message, 1})}) {
      for (const std::int32_t id : ids) std::printf("%d ", id);
      std::printf("\n%s\n", tokenizer->decode(ids, false).c_str());
    }
    std::fputs(chat.render({&message, 1}).c_str(), stdout);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "text_alone: %s\n", error.what());
    return 1;
  }
}
