#include "apps/attention/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>

#include "apps/attention/measures.h"
#include "apps/cli/base64.h"
#include "apps/cli/whole_file.h"
#include "base/html_template.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

using nlohmann::json;

const char* const kPage =
#include "attention/page/page.html.inc"
    ;
const char* const kStyle =
#include "attention/page/page.css.inc"
    ;
const char* const kScript =
#include "attention/page/page.js.inc"
    ;

// A JSON string in valid UTF-8; bytes that are not UTF-8 become U+FFFD.
std::string json_text(const std::string& text) { return json_line(text); }

std::string json_texts(const std::vector<std::string>& texts) { return json_line(texts); }

// All members of a sentence except the weights, without the braces.
std::string json_members(const SentenceMaps& maps) {
  const std::string prompt =
      maps.prompt_tokens > 0 ? fmt::format(R"(,"prompt_tokens":{})", maps.prompt_tokens) : "";
  return fmt::format(R"("model":{},"device":{},"source":{{"text":{},"tokens":{}}},)"
                     R"("target":{{"text":{},"tokens":{},"decoder_input":{}}}{})",
                     json_text(maps.model), json_text(maps.device), json_text(maps.source_text),
                     json_texts(maps.source_tokens), json_text(maps.target_text),
                     json_texts(maps.target_tokens), json_texts(maps.decoder_input_tokens), prompt);
}

std::string kind_members(const SentenceMaps::Kind& kind) {
  const std::string windows =
      kind.windows.empty() ? "" : R"(,"windows":)" + json(kind.windows).dump();
  return fmt::format(R"("kind":{},"layers":{},"heads":{},"queries":{},"keys":{}{})",
                     json_text(kind.name), kind.layers, kind.heads, kind.queries, kind.keys,
                     windows);
}

void append_number(std::string& out, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(out), "{:.5g}", value);
  } else {
    out += "null";
  }
}

// Arrays [layer][head] of the measures of measure_heads().
std::string measure_members(const SentenceMaps::Kind& kind) {
  const std::vector<MapMeasures> heads = measure_heads(kind);
  std::string out;
  for (const auto& [name, member] : {std::pair("entropy", &MapMeasures::entropy),
                                     std::pair("max_weight", &MapMeasures::largest)}) {
    out += fmt::format(R"("{}":)", name);
    for (std::size_t i = 0; i < heads.size(); ++i) {
      out += i == 0 ? "[[" : i % kind.heads == 0 ? "],[" : ",";
      append_number(out, heads[i].*member);
    }
    out += "]],";
  }
  return out;
}

// Nested arrays [layer][head][query][key].
void append_weights(std::string& out, const SentenceMaps::Kind& kind) {
  const std::size_t extents[] = {kind.heads * kind.queries * kind.keys, kind.queries * kind.keys,
                                 kind.keys};
  out += '[';
  for (std::size_t i = 0; i < kind.weights.size(); ++i) {
    if (i != 0) {
      for (const std::size_t extent : extents)
        if (i % extent == 0) out += ']';
      out += ',';
    }
    for (const std::size_t extent : extents)
      if (i % extent == 0) out += '[';
    append_number(out, double{kind.weights[i]});
  }
  out += "]]]]";
}

// Whether no query has weight at a key behind it: half of such maps need not be stored.
bool is_triangle(const SentenceMaps::Kind& kind) {
  if (kind.queries != kind.keys) return false;
  const std::size_t n = kind.keys;
  for (std::size_t row = 0; row < kind.weights.size() / n; ++row) {
    const auto first = kind.weights.begin() + static_cast<std::ptrdiff_t>(row * n);
    if (std::any_of(first + static_cast<std::ptrdiff_t>(row % n + 1),
                    first + static_cast<std::ptrdiff_t>(n),
                    [](float weight) { return weight != 0; }))
      return false;
  }
  return true;
}

// Weights as little-endian 16-bit fixed point (65534 is 1, 65535 is missing) in base64: a third of
// the size of decimals, and finer than the three digits that the page shows. Row i of a triangle
// has i + 1 weights.
std::string pack_weights(const SentenceMaps::Kind& kind, bool triangle) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(kind.weights.size() * 2 / (triangle ? 2 : 1) +
                2 * kind.layers * kind.heads * kind.queries);
  for (std::size_t i = 0; i < kind.weights.size(); ++i) {
    if (triangle && i % kind.keys > i / kind.keys % kind.queries) continue;
    const float weight = kind.weights[i];
    const auto fixed =
        std::isfinite(weight)
            ? static_cast<unsigned>(std::lround(std::clamp(weight, 0.f, 1.f) * 65534.f))
            : 65535u;
    bytes.push_back(static_cast<std::uint8_t>(fixed & 0xFF));
    bytes.push_back(static_cast<std::uint8_t>(fixed >> 8));
  }
  return base64(std::as_bytes(std::span(bytes)));
}

void check_size(const std::string& where, const char* what, std::size_t have, std::size_t want,
                const char* of) {
  if (have == want) return;
  throw ShapeError(where, fmt::format("{} {}, but there are {} {}", have, what, want, of), "");
}

void check_sentences(const std::vector<SentenceMaps>& sentences) {
  if (sentences.empty()) throw ShapeError("attention maps", "there is no sentence to show", "");
  for (const SentenceMaps& maps : sentences) check_attention(maps);
}

}  // namespace

std::string_view base_kind(std::string_view name) {
  constexpr std::string_view kRollout = "_rollout";
  return name.ends_with(kRollout) ? name.substr(0, name.size() - kRollout.size()) : name;
}

const SentenceMaps::Kind& first_view(const SentenceMaps& maps) {
  for (const char* name : {"cross", "decoder"}) {
    const auto found = std::ranges::find(maps.kinds, name, &SentenceMaps::Kind::name);
    if (found != maps.kinds.end()) return *found;
  }
  return maps.kinds.front();
}

void check_attention(const SentenceMaps& maps) {
  if (maps.kinds.empty())
    throw ShapeError("attention maps", "the model recorded no attention weights", "");
  if (maps.prompt_tokens > maps.target_tokens.size())
    throw ShapeError("attention maps",
                     fmt::format("{} tokens of a prompt, but {} in all", maps.prompt_tokens,
                                 maps.target_tokens.size()),
                     "");
  std::set<std::string> seen;
  for (const SentenceMaps::Kind& kind : maps.kinds) {
    const std::string where = fmt::format("attention maps, kind \"{}\"", kind.name);
    const std::string_view base = base_kind(kind.name);
    if (base != "encoder" && base != "decoder" && base != "cross")
      throw ShapeError(where, "is none of encoder, decoder and cross, nor a rollout of one", "");
    if (!seen.insert(kind.name).second) throw ShapeError(where, "comes twice", "");
    if (kind.layers == 0 || kind.heads == 0 || kind.queries == 0 || kind.keys == 0)
      throw ShapeError(where,
                       fmt::format("has shape ({}, {}, {}, {}): there is nothing to show",
                                   kind.layers, kind.heads, kind.queries, kind.keys),
                       "");
    const bool query_source = base == "encoder", key_source = base != "decoder";
    check_size(where, "queries", kind.queries,
               query_source ? maps.source_tokens.size() : maps.target_tokens.size(),
               query_source ? "source tokens" : "target tokens");
    check_size(where, "keys", kind.keys,
               key_source ? maps.source_tokens.size() : maps.target_tokens.size(),
               key_source ? "source tokens" : "target tokens");
    if (base == "decoder" && !maps.decoder_input_tokens.empty())
      check_size(where, "keys", kind.keys, maps.decoder_input_tokens.size(),
                 "decoder input tokens");
    if (!kind.windows.empty())
      check_size(where, "windows", kind.windows.size(), kind.layers, "layers");
    // Sizes are divided rather than multiplied, so that sizes near the limit cannot wrap round to a
    // match.
    const std::size_t map_size = kind.queries * kind.keys;
    if (kind.weights.size() / kind.layers / kind.heads != map_size ||
        kind.weights.size() != kind.layers * kind.heads * map_size)
      throw ShapeError(
          where,
          fmt::format("{} weights, but the shape ({}, {}, {}, {}) needs another number",
                      kind.weights.size(), kind.layers, kind.heads, kind.queries, kind.keys),
          "");
  }
}

std::string to_json(const SentenceMaps& maps) { return to_json(std::vector<SentenceMaps>{maps}); }

std::string to_json(const std::vector<SentenceMaps>& sentences) {
  check_sentences(sentences);
  std::string out = R"({"schema":"mulciber.attention","version":1,"sentences":[)";
  const char* between_sentences = "\n";
  for (const SentenceMaps& maps : sentences) {
    out += between_sentences;
    out += '{';
    out += json_members(maps) + R"(,"attention":[)";
    const char* between_kinds = "\n";
    for (const SentenceMaps::Kind& kind : maps.kinds) {
      out += between_kinds;
      out += '{';
      out += kind_members(kind) + ',' + measure_members(kind) + R"("weights":)";
      append_weights(out, kind);
      out += "}";
      between_kinds = ",\n";
    }
    out += "]}";
    between_sentences = ",\n";
  }
  return out + "]}\n";
}

namespace {

/// A list of sentences with packed weights.
std::string packed_sentences(std::span<const SentenceMaps> sentences) {
  std::string data = "[";
  for (const SentenceMaps& maps : sentences) {
    if (data.size() > 1) data += ",\n";
    data += '{';
    data += json_members(maps) + R"(,"attention":[)";
    const char* between_kinds = "";
    for (const SentenceMaps::Kind& kind : maps.kinds) {
      data += between_kinds;
      data += '{';
      const bool triangle = is_triangle(kind);
      data += kind_members(kind) + (triangle ? R"(,"triangle":true)" : "") + R"(,"packed":")" +
              pack_weights(kind, triangle) + "\"}";
      between_kinds = ",\n";
    }
    data += "]}";
  }
  return data + "]";
}

}  // namespace

std::string to_packed_json(const SentenceMaps& maps) {
  check_attention(maps);
  return R"({"schema":"mulciber.attention","version":1,"sentences":)" +
         packed_sentences({&maps, 1}) + "}\n";
}

std::string to_html(const SentenceMaps& maps) { return to_html(std::vector<SentenceMaps>{maps}); }

std::string to_html(const std::vector<SentenceMaps>& sentences) {
  check_sentences(sentences);
  const std::string data = json_for_script(packed_sentences(sentences));
  const TemplateText texts[] = {{"STYLE", kStyle}, {"SCRIPT", kScript}, {"MAPS", data}};
  return fill_template(kPage, texts);
}

AttentionFormat attention_format(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (extension == ".html" || extension == ".htm") return AttentionFormat::kHtml;
  if (extension == ".json") return AttentionFormat::kJson;
  if (extension == ".svg") return AttentionFormat::kSvg;
  throw Error(
      path.string(),
      extension.empty() ? "has no extension to say in which format attention maps should be written"
                        : fmt::format("attention maps cannot be written as \"{}\"", extension),
      "name a file that ends in .html (interactive page), .svg (figure) or .json (numbers)");
}

std::vector<std::filesystem::path> write_attention(const std::filesystem::path& path,
                                                   const std::vector<SentenceMaps>& sentences,
                                                   const SvgOptions& svg) {
  const AttentionFormat format = attention_format(path);
  check_sentences(sentences);
  if (format == AttentionFormat::kHtml) {
    write_whole_file(path, to_html(sentences));
    return {path};
  }
  if (format == AttentionFormat::kJson) {
    write_whole_file(path, to_json(sentences));
    return {path};
  }
  if (sentences.size() == 1) {
    write_whole_file(path, to_svg(sentences.front(), svg));
    return {path};
  }
  std::vector<std::filesystem::path> written;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    std::filesystem::path numbered = path;
    numbered.replace_filename(
        fmt::format("{}-{}{}", path.stem().string(), i + 1, path.extension().string()));
    write_whole_file(numbered, to_svg(sentences[i], svg));
    written.push_back(std::move(numbered));
  }
  return written;
}

}  // namespace mulciber::apps
