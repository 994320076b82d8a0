#include "models/generation/completion.h"

namespace mulciber {

Completion::Completion(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                       const std::vector<std::string>& stops,
                       std::function<void(std::string_view)> on_text)
    : stream_(tokenizer, prompt), filter_(stops), on_text_(std::move(on_text)) {
  result_.prompt_ids.assign(prompt.begin(), prompt.end());
}

bool Completion::push(uint32_t id, bool ends_text) {
  if (filter_.stopped()) return false;
  result_.ids.push_back(id);
  if (!ends_text) show(filter_.push(stream_.push(static_cast<int32_t>(id))));
  return !filter_.stopped();
}

Generation Completion::finish(GenerateEnd end, bool cancelled) {
  if (!filter_.stopped() && !cancelled) show(filter_.push(stream_.finish()));
  if (!filter_.stopped()) show(filter_.finish());
  result_.end = filter_.stopped() ? GenerateEnd::kStopText
                : cancelled       ? GenerateEnd::kCancelled
                                  : end;
  return std::move(result_);
}

void Completion::show(const std::string& text) {
  result_.text += text;
  if (!text.empty() && on_text_) on_text_(text);
}

const char* name_of(GenerateEnd end) {
  switch (end) {
    case GenerateEnd::kEndOfText: return "end of text";
    case GenerateEnd::kStopText: return "stop text";
    case GenerateEnd::kTokenLimit: return "token limit";
    case GenerateEnd::kContextFull: return "context full";
    case GenerateEnd::kCancelled: return "cancelled";
  }
  return "?";
}

}  // namespace mulciber
