// UTF-8 and Unicode properties for tokenizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulciber {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD
inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581, SentencePiece's space

/// The code point at the start of `text` and its length in bytes; length 0 when the bytes there are
/// not valid UTF-8 (or there are none).
struct CodePoint {
  std::int32_t value = -1;
  std::size_t length = 0;
};
CodePoint first_code_point(std::string_view text);

void append_utf8(std::string& out, std::int32_t code_point);
bool is_valid_utf8(std::string_view text);
std::size_t count_code_points(std::string_view valid_text);

/// Replaces each byte outside of a valid character by U+FFFD.
std::string replace_invalid(std::string_view text);
/// Replaces each longest run that could begin a character by one U+FFFD, like the Unicode standard
/// recommends in section 3.9 ("substitution of maximal subparts").
std::string decode_lossy(std::string_view bytes);

/// The Unicode property White_Space.
bool is_white_space(std::int32_t code_point);
/// General category P*, or an ASCII symbol: BERT separates these.
bool is_bert_punctuation(std::int32_t code_point);
/// General categories Nd, Nl, No.
bool is_numeric(std::int32_t code_point);
/// Letters, marks, digits and connectors, the characters of \w.
bool is_word(std::int32_t code_point);
bool is_mark(std::int32_t code_point);             // M*
bool is_nonspacing_mark(std::int32_t code_point);  // Mn
bool is_control(std::int32_t code_point);          // Cc, Cf, Cs, Co

/// Maps character by character, without regard to context.
std::string lower_case(std::string_view valid_text);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::string normalize(std::string_view valid_text, NormalForm form);

/// Lengths in bytes of the extended grapheme clusters, in order.
std::vector<std::size_t> grapheme_lengths(std::string_view valid_text);

/// Replaces every occurrence of `from`, left to right. `from` must not be empty.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

/// The value of a byte piece such as <0x0A>; -1 for anything else.
int byte_of_piece(std::string_view piece);
std::string piece_of_byte(unsigned char byte);

}  // namespace mulciber
