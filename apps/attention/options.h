// --attention, --attention-view and --mask-heads, for every command that has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/attention/page.h"
#include "apps/cli/command.h"

namespace mulciber::apps {

struct MapOptions {
  std::string file, view;
  std::vector<std::string> mask_heads;
};
/// kinds: the kinds of attention that the command's models have.
void add_attention_options(Command& command, MapOptions& options,
                           const std::vector<std::string>& kinds);

/// Throws Error when the file's extension names an unknown format; called before any work.
void check_attention_file(const MapOptions& options);

/// Parses "decoder.3.1": kind, layer, head. Throws ModelError for another form, and for a kind that
/// is not in `kinds`.
struct HeadName {
  std::string kind;
  uint32_t layer = 0, head = 0;
};
HeadName head_name(const std::string& word, const std::vector<std::string>& kinds);

/// Parses "cross", "cross.2", "cross.2.3", "cross.*.*": kind, layer, head; * is all of them. Throws
/// ModelError.
SvgOptions figure_view(const std::string& text, const SentenceMaps& maps);

/// Writes the maps and prints the names of the files. Throws as write_attention and figure_view do.
void write_maps(const MapOptions& options, const std::vector<SentenceMaps>& maps);

/// The last part of a path, without a slash at its end.
std::string name_of_model(const std::string& path);

}  // namespace mulciber::apps
