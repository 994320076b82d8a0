// JSON documents from untrusted files. Code that reads values of a document includes
// nlohmann/json.hpp; that costs a compiler two seconds, and most files only pass documents on.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "checkpoints/model_file.h"

namespace mulciber {

using Json = nlohmann::json;

/// Bounds that keep a hostile document from exhausting memory or stack. The defaults admit a
/// tokenizer of half a million merges (about 2 million values) and refuse documents that would need
/// more than a few hundred megabytes.
struct JsonLimits {
  std::size_t bytes = std::size_t{128} << 20;
  std::size_t depth = 64;
  std::size_t values = 8'000'000;
};

/// Parses `text`; `where` names it in errors.
/// Throws ModelError on a syntax error, invalid UTF-8, a key repeated within one object, or an
/// exceeded limit.
Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits = {});

/// Parses a file; throws the errors of parse_json() and ModelFile.
Json read_json(const ModelFile& file, const JsonLimits& limits = {});

/// Writes JSON in one line; bytes that are not UTF-8, which JSON cannot hold, become U+FFFD.
std::string json_line(const Json& json);

/// Makes a name from a file fit for a message: escapes control characters and bytes that are not
/// UTF-8, and shortens long names.
std::string printable(std::string_view name);

}  // namespace mulciber
