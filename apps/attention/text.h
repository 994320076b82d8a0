// Makes token text safe to show, for the attention page and figure.
#pragma once

#include <string>
#include <string_view>

namespace mulciber::apps {

/// `text` as valid UTF-8 that every XML 1.0 parser accepts: bytes that are not UTF-8 become U+FFFD,
/// control characters and noncharacters are removed.
std::string xml_characters(std::string_view text);

/// `text` through xml_characters, with the five XML specials as entities.
std::string xml_escape(std::string_view text);

/// A piece as a label: a leading word-boundary mark is dropped (the figure draws boundaries
/// instead), other marks and spaces become U+2423 (open box), line feeds U+21B5, and more than
/// `max_columns` terminal columns end in an ellipsis. Not escaped.
std::string piece_label(std::string_view piece, int max_columns);

/// Whether the piece begins a word (a leading U+2581).
bool begins_word(std::string_view piece);

/// Whether the piece is a further part of the word before it: neither a word's beginning, nor
/// punctuation, symbols or spaces alone, nor a special token in angle brackets.
bool continues_word(std::string_view piece);

/// The width of `text` in terminal columns: 0 for combining marks, 2 for wide letters and emoji.
int display_columns(std::string_view text);

}  // namespace mulciber::apps
