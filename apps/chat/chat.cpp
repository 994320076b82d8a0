#include "apps/chat/chat.h"

#include <fmt/format.h>

#include <utility>

#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

constexpr std::string_view kHelp[] = {
    "/reset          forget the conversation, keep the system prompt",
    "/system TEXT    begin a new conversation with this system prompt (without TEXT: with none)",
    "/retry          answer the last question again",
    "/history        show the conversation so far",
    "/image FILE     show an image before the next question, to a model that sees them",
    "/exit           leave (so does Ctrl-D)",
    "Ctrl-C stops an answer. A line that ends in \\ goes on in the next.",
};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

Chat::Chat(const ChatTemplate& chat_template, ChatGenerate generate, ChatTerminal& terminal,
           std::string system_prompt, ChatRenderOptions options, ChatImages images)
    : template_(chat_template),
      generate_(std::move(generate)),
      terminal_(terminal),
      system_prompt_(std::move(system_prompt)),
      options_(std::move(options)),
      images_(std::move(images)) {
  options_.add_generation_prompt = true;
  reset();
}

void Chat::reset() {
  messages_.clear();
  shown_ = 0;
  if (images_.keep) images_.keep(0);
  if (!system_prompt_.empty()) messages_.push_back({"system", system_prompt_});
}

bool Chat::show(const std::string& file) {
  try {
    if (!images_.show) throw ModelError("the model", "sees no images", "talk with one that does");
    images_.show(file);
    ++shown_;
    return true;
  } catch (const ModelError& error) {
    terminal_.notice(error.what());
    return false;
  }
}

void Chat::take_back() {
  shown_ += messages_.back().images;
  messages_.pop_back();
}

size_t Chat::images() const {
  size_t count = 0;
  for (const ChatMessage& message : messages_) count += message.images;
  return count;
}

std::optional<std::string> Chat::read_question() {
  std::string question;
  while (const std::optional<std::string> line =
             terminal_.read_line(question.empty() ? "> " : ". ")) {
    question += *line;
    if (!question.ends_with('\\')) return question;
    question.back() = '\n';
  }
  if (question.empty()) return std::nullopt;
  return question;
}

void Chat::run() {
  while (const std::optional<std::string> question = read_question()) {
    const std::string_view text = trimmed(*question);
    if (text.empty()) continue;
    if (text.starts_with('/')) {
      if (command(std::string(text)) == Next::kExit) return;
    } else {
      ask(*question);
    }
  }
}

Chat::Next Chat::command(const std::string& line) {
  const size_t blank = line.find_first_of(" \t\n");
  const std::string name = line.substr(0, blank);
  const std::string_view rest =
      blank == line.npos ? std::string_view() : trimmed(std::string_view(line).substr(blank));
  if (name == "/exit" || name == "/quit" || name == "/bye") return Next::kExit;
  if (name == "/reset") {
    reset();
    terminal_.notice("The conversation is forgotten.");
  } else if (name == "/system") {
    system_prompt_ = rest;
    reset();
    terminal_.notice(system_prompt_.empty() ? "A new conversation without a system prompt."
                                            : "A new conversation with this system prompt.");
  } else if (name == "/retry") {
    if (!messages_.empty() && messages_.back().role == "assistant") messages_.pop_back();
    if (messages_.empty() || messages_.back().role != "user")
      terminal_.notice("There is no question to answer again.");
    else
      answer();
  } else if (name == "/image") {
    if (show(std::string(rest))) terminal_.notice("The next question is about this image.");
  } else if (name == "/history") {
    if (messages_.empty()) terminal_.notice("Nothing was said yet.");
    for (const ChatMessage& message : messages_) {
      std::string images;
      for (uint32_t i = 0; i < message.images; ++i) images += "[image] ";
      terminal_.notice(message.role + ": " + images + message.content);
    }
  } else {
    if (name != "/help") terminal_.notice(fmt::format("There is no command {}. These are:", name));
    for (const std::string_view help : kHelp) terminal_.notice(help);
  }
  return Next::kContinue;
}

bool Chat::ask(const std::string& question) {
  messages_.push_back({"user", question});
  messages_.back().images = std::exchange(shown_, 0);
  return answer();
}

bool Chat::answer() {
  try {
    const ChatCompletion answer =
        generate_(template_.render(messages_, options_),
                  [this](std::string_view piece) { terminal_.write(piece); });
    terminal_.write("\n");
    // A question that was stopped before its answer began was a mistake, and many templates refuse
    // two questions in a row.
    if (answer.text.empty() && answer.stopped)
      take_back();
    else
      messages_.push_back({"assistant", answer.text});
    if (!answer.note.empty()) terminal_.notice(answer.note);
    if (answer.context_full)
      terminal_.notice(
          "The context is full: the answer ends here. /reset begins anew; chat --shift goes on "
          "without the oldest tokens.");
    return true;
  } catch (const LogitsError&) {
    throw;  // no other question would succeed
  } catch (const ModelError& error) {
    take_back();
    terminal_.notice(error.what());
    return false;
  }
}

}  // namespace mulciber::apps
