// Attention maps for readers: a self-contained interactive page, a figure, and JSON. The code runs
// on the CPU; docs/guide/attention-maps.md explains what the maps show,
// docs/reference/attention-json.md the JSON schema.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mulciber::apps {

/// The attention probabilities of one sentence (pair), for every layer and head.
struct SentenceMaps {
  /// Pieces of text as a reader sees them; a leading U+2581 (lower one eighth block) marks the
  /// start of a word. Token i of `target_tokens` is the one that decoder step i chose.
  std::vector<std::string> source_tokens, target_tokens;
  std::string source_text, target_text, model, device;
  /// Not 0: the maps are a decoder-only model's. There is no source; `target_tokens` are those of
  /// prompt and answer, the first prompt_tokens of which are the prompt's, and row i of "decoder"
  /// belongs to token i itself. The texts are the prompt's and the answer's.
  std::size_t prompt_tokens = 0;

  struct Kind {
    /// "encoder" (source attends to source), "decoder" (target to target, causal) or "cross"
    /// (target to source); with "_rollout" after it, the result of attention_rollout().
    std::string name;
    std::size_t layers = 0, heads = 0, queries = 0, keys = 0;
    /// [layer][head][query][key], probabilities in 0..1. NaN and infinity mean "missing".
    std::vector<float> weights;
    /// Per layer: how many of the latest keys a query sees, its own included; 0: all. Empty: no
    /// layer has a window.
    std::vector<std::size_t> windows = {};
  };
  std::vector<Kind> kinds;

  /// The tokens that the decoder read: the start token, then the target shifted by one. They label
  /// the keys of the "decoder" kind; when empty, `target_tokens` does.
  std::vector<std::string> decoder_input_tokens;
};

enum class AttentionFormat { kHtml, kJson, kSvg };

struct SvgOptions {
  /// Empty: "cross" where there is one, else "decoder", else the first kind.
  std::string kind;
  /// One row of panels per layer. Empty: the last layer.
  std::vector<std::size_t> layers;
  /// One column of panels per head. Empty: one column, the mean over heads.
  std::vector<std::size_t> heads;
};

/// The kind that is shown where the options name none.
const SentenceMaps::Kind& first_view(const SentenceMaps& maps);

/// "encoder" of "encoder" and of "encoder_rollout", and so on.
std::string_view base_kind(std::string_view name);

/// Checks that sizes agree with each other and with the tokens. Throws ShapeError, naming the kind,
/// when they do not, when a kind comes twice or is unknown, and when there is nothing to show.
void check_attention(const SentenceMaps& maps);

/// One JSON document; several sentences are entries of "sentences". Valid UTF-8 whatever the tokens
/// hold (bad bytes become U+FFFD); weights with 5 significant digits, missing ones null.
///   {"schema": "mulciber.attention", "version": 1, "sentences": [{
///     "model": TEXT, "device": TEXT,
///     "source": {"text": TEXT, "tokens": [TEXT, ...]},
///     "target": {"text": TEXT, "tokens": [TEXT, ...], "decoder_input": [TEXT, ...]},
///     "prompt_tokens": N,   decoder-only models alone
///     "attention": [{"kind": "encoder" | "decoder" | "cross" | "encoder_rollout" | ...,
///       "layers": N, "heads": N, "queries": N, "keys": N,
///       "windows": [N, ...],   where layers have windows
///       "entropy": [layer][head], "max_weight": [layer][head],   means over queries; bits
///       "weights": [layer][head][query][key]}]}]}
/// Throws as check_attention does.
std::string to_json(const SentenceMaps& maps);
std::string to_json(const std::vector<SentenceMaps>& sentences);

/// JSON for a program that draws the maps, in a fifth of the bytes: in place of "entropy",
/// "max_weight" and "weights" a kind has "packed", its weights as little-endian 16-bit fixed point
/// (65534 is 1, 65535 is missing) in base64; with "triangle": true, row i has only its first i + 1
/// weights. Throws as check_attention does.
std::string to_packed_json(const SentenceMaps& maps);

/// One HTML page that needs no other file and no network; several sentences get a picker.
/// Throws as check_attention does.
std::string to_html(const SentenceMaps& maps);
std::string to_html(const std::vector<SentenceMaps>& sentences);

/// A heat map with token labels and a legend, as a standalone SVG 1.1 file. Throws as
/// check_attention does, and ShapeError for a kind, layer or head that the maps do not have.
std::string to_svg(const SentenceMaps& maps, const SvgOptions& options = {});

/// The format that the extension of `path` names, in upper or lower case. Throws Error naming the
/// known formats; call it before the work, so that a wrong name costs nothing.
AttentionFormat attention_format(const std::filesystem::path& path);

/// Writes the maps in the format that the extension of `path` names, and returns the files written:
/// `path`, or, for an SVG of several sentences, one numbered file each (map-1.svg, map-2.svg, ...).
/// A file appears complete or not at all, and replaces an older one only when complete.
/// Throws as attention_format and to_json do, and Error with path and reason when a file cannot be
/// written.
std::vector<std::filesystem::path> write_attention(const std::filesystem::path& path,
                                                   const std::vector<SentenceMaps>& sentences,
                                                   const SvgOptions& svg = {});

}  // namespace mulciber::apps
