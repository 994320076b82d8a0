#include "text/token_stream.h"

#include <algorithm>

#include "text/tokenizers/pipeline.h"
#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

constexpr std::size_t kBefore = 6;  // preceding tokens that are decoded along

/// Number of bytes at the end that begin an incomplete character, or that are a replacement
/// character, which stands for such bytes where a tokenizer decodes to valid UTF-8.
std::size_t incomplete_bytes(std::string_view text) {
  if (text.ends_with(kReplacementCharacter)) return kReplacementCharacter.size();
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0u) == 0x80u) continue;  // inside a character
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::string written_text(const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
                         bool skip_special) {
  std::vector<std::int32_t> known(ids.begin(), ids.end());
  std::erase_if(known, [&](std::int32_t id) { return id >= tokenizer.vocab_size(); });
  return tokenizer.decode(known, skip_special);
}

TokenStream::TokenStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before,
                         bool skip_special)
    : tokenizer_(tokenizer), skip_special_(skip_special) {
  const std::size_t count = std::min(before.size(), kBefore);
  ids_.assign(before.end() - static_cast<std::ptrdiff_t>(count), before.end());
  shown_ = ids_.size();
}

std::string TokenStream::decode(std::size_t from, std::size_t to) const {
  return written_text(tokenizer_, std::span(ids_).subspan(from, to - from), skip_special_);
}

std::string TokenStream::push(std::int32_t id) {
  ids_.push_back(id);
  const std::string old = decode(begin_, shown_), all = decode(begin_, ids_.size());
  if (all.size() <= old.size() || incomplete_bytes(all) > 0) return {};
  begin_ = shown_;
  shown_ = ids_.size();
  return all.substr(old.size());
}

std::string TokenStream::finish() {
  const std::string old = decode(begin_, shown_), all = decode(begin_, ids_.size());
  shown_ = ids_.size();
  return all.size() > old.size() ? all.substr(old.size()) : std::string();
}

std::string token_text(const Tokenizer& tokenizer, std::int32_t id) {
  constexpr std::string_view kWordMark = "\xe2\x96\x81";
  if (id >= tokenizer.vocab_size()) return {};
  std::string piece(tokenizer.piece(id));
  if (piece.find(kWordMark) != std::string::npos || tokenizer.is_special(id)) return piece;
  std::string text = tokenizer.decode({&id, 1}, false);
  if (text.empty() || incomplete_bytes(text) > 0) return piece;
  if (text.front() == ' ') text.replace(0, 1, kWordMark);
  return text;
}

std::string token_bytes(const Tokenizer& tokenizer, std::int32_t id, std::string decoded) {
  if (decoded.find(kReplacementCharacter) == std::string::npos) return decoded;
  const std::string_view piece = tokenizer.piece(id);
  if (const int byte = byte_of_piece(piece); byte >= 0) return {static_cast<char>(byte)};
  std::string bytes = characters_to_bytes(piece);
  return decode_lossy(bytes) == decoded ? bytes : decoded;
}

StopFilter::StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, std::string());
}

std::string StopFilter::push(const std::string& text) {
  if (stopped_) return {};
  held_ += text;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, held_.find(stop));
  if (end != std::string::npos) {
    stopped_ = true;
    held_.resize(end);
    return std::exchange(held_, {});
  }
  std::size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t count = std::min(stop.size() - 1, held_.size()); count > keep; --count) {
      if (held_.ends_with(std::string_view(stop).substr(0, count))) keep = count;
    }
  }
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopFilter::finish() { return std::exchange(held_, {}); }

}  // namespace mulciber
