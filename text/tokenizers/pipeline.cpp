#include "text/tokenizers/pipeline.h"

#include <utf8proc.h>

#include <array>
#include <nlohmann/json.hpp>

#include "mulciber/error.h"
#include "text/tokenizers/charsmap.h"
#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

/// Whether a byte is represented by the code point of the same number.
constexpr bool is_printable_byte(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct ByteAlphabet {
  std::array<std::int32_t, 256> character{};
  std::array<int, 512> byte{};

  constexpr ByteAlphabet() {
    for (int& b : byte) b = -1;
    std::int32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      character[static_cast<std::size_t>(b)] = is_printable_byte(b) ? b : next++;
      byte[static_cast<std::size_t>(character[static_cast<std::size_t>(b)])] = b;
    }
  }
};

constexpr ByteAlphabet kByteAlphabet;

bool is_cjk(std::int32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/// Calls `visit(code point, its bytes)` for each character.
template <typename Visit>
void for_each_character(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const std::size_t length = std::max<std::size_t>(1, c.length);
    visit(c.value, text.substr(0, length));
    text.remove_prefix(length);
  }
}

template <typename Keep>
std::string filter(std::string_view text, Keep&& keep) {
  std::string out;
  for_each_character(text, [&](std::int32_t c, std::string_view bytes) {
    if (keep(c)) out += bytes;
  });
  return out;
}

std::string strip(const std::string& text, bool left, bool right) {
  std::size_t begin = text.size(), end = 0, at = 0;
  for_each_character(text, [&](std::int32_t c, std::string_view bytes) {
    if (!is_white_space(c)) {
      begin = std::min(begin, at);
      end = at + bytes.size();
    }
    at += bytes.size();
  });
  if (!left) begin = 0;
  if (!right) end = text.size();
  return begin < end ? text.substr(begin, end - begin) : std::string();
}

/// Source: Devlin et al. 2018 (BERT), tokenization.py.
std::string bert_clean(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::int32_t c, std::string_view bytes) {
    const auto category = utf8proc_category(c);
    const bool control = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                         category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS;
    if (c == '\t' || c == '\n' || c == '\r' || (!control && is_white_space(c))) {
      out += ' ';
    } else if (c != 0xFFFD && !control) {
      out += bytes;
    }
  });
  return out;
}

Normalizer bert_normalizer(const ConfigReader& reader) {
  const bool clean = reader.boolean_or("clean_text", true);
  const bool spread_cjk = reader.boolean_or("handle_chinese_chars", true);
  const bool lower = reader.boolean_or("lowercase", true);
  const bool strip_accents = reader.boolean_or("strip_accents", lower);
  return [=](std::string text) {
    if (clean) text = bert_clean(text);
    if (spread_cjk) {
      std::string out;
      for_each_character(text, [&](std::int32_t c, std::string_view bytes) {
        is_cjk(c) ? out.append(" ").append(bytes).append(" ") : out.append(bytes);
      });
      text = std::move(out);
    }
    if (strip_accents)
      text = filter(normalize(text, NormalForm::kNfd),
                    [](std::int32_t c) { return !is_nonspacing_mark(c); });
    if (lower) text = lower_case(text);
    return text;
  };
}

std::string decode_base64(std::string_view text, const ConfigReader& reader) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0) reader.fail("precompiled_charsmap", "is not base64");
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return out;
}

/// Replaces a grapheme that the table knows as a whole, else its characters one by one.
Normalizer precompiled(const ConfigReader& reader) {
  // The table's shortest match counts, like in the Rust implementation; graphemes of 6 bytes and
  // more are replaced by characters.
  constexpr std::size_t kLongestGrapheme = 5;
  const CharsMap table(reader.has("precompiled_charsmap")
                           ? decode_base64(reader.text("precompiled_charsmap"), reader)
                           : std::string(),
                       reader.where());
  return [table](const std::string& text) {
    std::string out;
    std::string_view rest = text;
    for (const std::size_t length : grapheme_lengths(text)) {
      const std::string_view grapheme = rest.substr(0, length);
      rest.remove_prefix(length);
      if (length <= kLongestGrapheme) {
        if (const CharsMap::Match match = table.shortest_prefix(grapheme); match.length > 0) {
          out += match.replacement;
          continue;
        }
      }
      for_each_character(grapheme, [&](std::int32_t, std::string_view bytes) {
        const CharsMap::Match match = table.shortest_prefix(bytes);
        out += match.length > 0 ? match.replacement : bytes;
      });
    }
    return replace_invalid(out);
  };
}

}  // namespace

ConfigReader component_reader(const Json& component, const ConfigReader& file, const char* stage) {
  return {component, file.where() + ": " + stage, file.remedy()};
}

std::string bytes_to_characters(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes)
    append_utf8(out, kByteAlphabet.character[static_cast<unsigned char>(byte)]);
  return out;
}

std::string characters_to_bytes(std::string_view piece) {
  std::string out;
  bool whole = true;
  for_each_character(piece, [&](std::int32_t c, std::string_view) {
    const int byte = c >= 0 && c < 512 ? kByteAlphabet.byte[static_cast<std::size_t>(c)] : -1;
    whole &= byte >= 0;
    out += static_cast<char>(byte);
  });
  return whole ? out : std::string(piece);
}

Pattern::Pattern(const Json& json, const ConfigReader& file) : where_(file.where()) {
  const ConfigReader reader(json, file.where() + ": pattern", file.remedy());
  if (reader.has("Regex")) {
    regex_.emplace_back(reader.text("Regex"), where_);
  } else {
    literal_ = reader.text("String");
    if (literal_.empty()) reader.fail("String", "is empty");
  }
}

std::vector<TextRange> Pattern::find_all(std::string_view text) const {
  if (!regex_.empty()) return regex_[0].find_all(text);
  std::vector<TextRange> ranges;
  for (std::size_t at = text.find(literal_); at != text.npos;
       at = text.find(literal_, at + literal_.size()))
    ranges.emplace_back(at, at + literal_.size());
  return ranges;
}

std::string Pattern::replace_all(std::string_view text, std::string_view content) const {
  // A normalizer may expand a character. A text that grows beyond this bound is an attempt to
  // exhaust memory.
  const std::size_t bound = 64 * text.size() + 65536;
  std::string out;
  std::size_t at = 0;
  for (const auto& [begin, end] : find_all(text)) {
    out.append(text.substr(at, begin - at)).append(content);
    if (out.size() > bound)
      throw ModelError(where_, "a replacement makes the text more than 64 times as long",
                       "the tokenizer cannot be used");
    at = end;
  }
  return out.append(text.substr(at));
}

Normalizer read_normalizer(const Json& component, const ConfigReader& file) {
  if (component.is_null()) return {};
  const ConfigReader reader = component_reader(component, file, "normalizer");
  const std::string type = reader.text("type");
  if (type == "Sequence") {
    std::vector<Normalizer> steps;
    for (const Json& step : reader.list("normalizers"))
      if (Normalizer normalizer = read_normalizer(step, file))
        steps.push_back(std::move(normalizer));
    return [steps](std::string text) {
      for (const Normalizer& step : steps) text = step(std::move(text));
      return text;
    };
  }
  const auto form = [](NormalForm f) {
    return [f](const std::string& text) { return normalize(text, f); };
  };
  if (type == "NFC") return form(NormalForm::kNfc);
  if (type == "NFD") return form(NormalForm::kNfd);
  if (type == "NFKC") return form(NormalForm::kNfkc);
  if (type == "NFKD") return form(NormalForm::kNfkd);
  if (type == "Lowercase") return [](const std::string& text) { return lower_case(text); };
  if (type == "StripAccents")
    return [](const std::string& text) {
      return filter(text, [](std::int32_t c) { return !is_mark(c); });
    };
  if (type == "Strip") {
    const bool left = reader.boolean_or("strip_left", true),
               right = reader.boolean_or("strip_right", true);
    return [=](const std::string& text) { return strip(text, left, right); };
  }
  if (type == "Replace") {
    const Pattern pattern(reader.value("pattern"), reader);
    return [pattern, content = reader.text("content")](const std::string& text) {
      return pattern.replace_all(text, content);
    };
  }
  if (type == "Prepend")
    return [prefix = reader.text("prepend")](const std::string& text) {
      return text.empty() ? text : prefix + text;
    };
  if (type == "ByteLevel") return [](const std::string& text) { return bytes_to_characters(text); };
  if (type == "BertNormalizer") return bert_normalizer(reader);
  if (type == "Precompiled") return precompiled(reader);
  reader.fail("type", "is '" + printable(type) + "', which is not supported");
}

}  // namespace mulciber
