// The conversation loop over a mock terminal and a mock model.
#include <deque>

#include "apps/chat/chat.h"
#include "mulciber/error.h"
#include "tests/catch.h"

using namespace mulciber;
using namespace mulciber::apps;

namespace {

const ChatTemplate& chat_template() {
  static const ChatTemplate shared(
      "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ "
      "raise_exception('system comes first') }}{% endif %}"
      "{% if 'forbidden' in m.content %}{{ raise_exception('not that') }}{% endif %}"
      "<{{ m.role[0] }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}",
      "test");
  return shared;
}

class PlayedTerminal : public ChatTerminal {
 public:
  explicit PlayedTerminal(std::deque<std::string> lines) : lines_(std::move(lines)) {}
  std::optional<std::string> read_line(std::string_view prompt) override {
    prompts += prompt;
    if (lines_.empty()) return std::nullopt;
    std::string line = lines_.front();
    lines_.pop_front();
    return line;
  }
  void write(std::string_view text) override { words += text; }
  void notice(std::string_view line) override { notices.emplace_back(line); }

  std::string words, prompts;
  std::vector<std::string> notices;
  size_t left() const { return lines_.size(); }

 private:
  std::deque<std::string> lines_;
};

/// A mock model that gives prepared answers in order and records the prompts.
struct PlayedModel {
  std::deque<ChatCompletion> answers;
  std::vector<std::string> prompts;

  ChatGenerate function() {
    return [this](const std::string& prompt, const std::function<void(std::string_view)>& on_text) {
      prompts.push_back(prompt);
      if (answers.empty())
        throw ModelError("prompt", "has 99 tokens, and the context 64", "/reset begins anew");
      ChatCompletion answer = answers.front();
      answers.pop_front();
      // A model gives its answer piece by piece.
      for (const char c : answer.text) on_text(std::string_view(&c, 1));
      return answer;
    };
  }
};

std::string said(const Chat& chat) {
  std::string all;
  for (const ChatMessage& message : chat.messages())
    all += message.role[0] + (":" + message.content) + "|";
  return all;
}

}  // namespace

TEST_CASE("A chat keeps its history and gives every prompt from the start") {
  PlayedTerminal terminal({"Hello", "", "  ", "And \\", "then?"});
  PlayedModel model{{{"Hi."}, {"Bye."}}, {}};
  Chat chat(chat_template(), model.function(), terminal, "Be brief.");
  chat.run();
  CHECK(model.prompts == std::vector<std::string>{"<s>Be brief.<u>Hello<a>",
                                                  "<s>Be brief.<u>Hello<a>Hi.<u>And \nthen?<a>"});
  CHECK(terminal.words == "Hi.\nBye.\n");
  CHECK(terminal.prompts == "> > > > . > ");
  CHECK(said(chat) == "s:Be brief.|u:Hello|a:Hi.|u:And \nthen?|a:Bye.|");
}

TEST_CASE("Commands of a chat") {
  PlayedTerminal terminal({"one", "/reset", "two", "/system Be kind.", "three", "/retry",
                           "/history", "/system", "/retry", "/nonsense", " /exit ", "four"});
  PlayedModel model{{{"1"}, {"2"}, {"3"}, {"3 again"}}, {}};
  Chat chat(chat_template(), model.function(), terminal, "S");
  chat.run();
  CHECK(model.prompts == std::vector<std::string>{"<s>S<u>one<a>", "<s>S<u>two<a>",
                                                  "<s>Be kind.<u>three<a>",
                                                  "<s>Be kind.<u>three<a>"});
  CHECK(terminal.left() == 1);
  CHECK(said(chat).empty());
  const auto& notices = terminal.notices;
  const auto noticed = [&](const std::string& line) {
    return std::find(notices.begin(), notices.end(), line) != notices.end();
  };
  CHECK(noticed("assistant: 3 again"));
  CHECK_FALSE(noticed("assistant: 3"));
  CHECK(noticed("There is no question to answer again."));
  CHECK(noticed("There is no command /nonsense. These are:"));
}

TEST_CASE("A stopped answer stays as far as it came") {
  PlayedTerminal terminal({"long", "never", "next"});
  PlayedModel model{{{"Once upon", true}, {"", true}, {"ok"}}, {}};
  Chat chat(chat_template(), model.function(), terminal);
  chat.run();
  CHECK(said(chat) == "u:long|a:Once upon|u:next|a:ok|");
}

TEST_CASE("What a template refuses and a full context end a question, not the chat") {
  PlayedTerminal terminal({"forbidden words", "fine", "too much", "/reset", "again"});
  PlayedModel model{{{"yes", false, true}}, {}};
  Chat chat(chat_template(), model.function(), terminal);
  chat.run();
  REQUIRE(terminal.notices.size() == 5);
  CHECK_THAT(terminal.notices[0], Catch::Matchers::ContainsSubstring("not that"));
  CHECK_THAT(terminal.notices[1], Catch::Matchers::ContainsSubstring("context is full"));
  CHECK_THAT(terminal.notices[2], Catch::Matchers::ContainsSubstring("has 99 tokens"));
  CHECK(model.prompts ==
        std::vector<std::string>{"<u>fine<a>", "<u>fine<a>yes<u>too much<a>", "<u>again<a>"});
  CHECK(chat.messages().empty());
  CHECK_FALSE(chat.ask("forbidden"));
}
