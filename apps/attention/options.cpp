#include "apps/attention/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "apps/cli/standard_error.h"

namespace mulciber::apps {

void add_attention_options(Command& command, MapOptions& options,
                           const std::vector<std::string>& kinds) {
  const std::string names = fmt::format("{}", fmt::join(kinds, ", "));
  const Option file =
      command
          .add_option("--attention", options.file,
                      "write the attention of every layer and head to FILE: .html, .svg or .json")
          .type_name("FILE");
  command
      .add_option(
          "--attention-view", options.view,
          fmt::format(
              "what an .svg shows: KIND[.LAYER[.HEAD]], * for all; KIND {}, or with _rollout",
              names))
      .type_name("VIEW")
      .needs(file);
  command.add_option("--mask-heads", options.mask_heads,
                     fmt::format("switch heads off: KIND.LAYER.HEAD, KIND {}", names));
}

void check_attention_file(const MapOptions& options) {
  if (!options.file.empty()) attention_format(options.file);
}

HeadName head_name(const std::string& word, const std::vector<std::string>& kinds) {
  char kind[16] = {};
  HeadName name;
  int end = 0;
  if (std::sscanf(word.c_str(), "%15[a-z].%u.%u%n", kind, &name.layer, &name.head, &end) == 3 &&
      static_cast<size_t>(end) == word.size() && std::ranges::count(kinds, std::string(kind)) > 0) {
    name.kind = kind;
    return name;
  }
  throw ModelError(
      "--mask-heads",
      fmt::format("'{}' is not KIND.LAYER.HEAD with KIND {}", word, fmt::join(kinds, ", ")),
      fmt::format("for example {}.1.0", kinds.back()));
}

SvgOptions figure_view(const std::string& text, const SentenceMaps& maps) {
  SvgOptions view;
  if (text.empty()) return view;
  std::vector<std::string> words;
  std::stringstream stream(text);
  for (std::string word; std::getline(stream, word, '.');) words.push_back(word);
  view.kind = words[0];
  const auto kind = std::ranges::find(maps.kinds, view.kind, &SentenceMaps::Kind::name);
  const auto fail = [&](const std::string& problem) {
    throw ModelError(
        "--attention-view", fmt::format("'{}' {}", text, problem),
        fmt::format("for example {0}.2.0, {0}.*.* or decoder_rollout", maps.kinds.front().name));
  };
  if (kind == maps.kinds.end()) fail("names no kind of attention of this model");
  if (words.size() > 3) fail("is not KIND.LAYER.HEAD");
  const auto choose = [&](size_t place, size_t count) {
    std::vector<size_t> chosen;
    if (words.size() <= place) return chosen;
    unsigned number = 0;
    int end = 0;
    if (words[place] == "*") {
      for (size_t i = 0; i < count; ++i) chosen.push_back(i);
    } else if (std::sscanf(words[place].c_str(), "%u%n", &number, &end) == 1 &&
               static_cast<size_t>(end) == words[place].size() && number < count) {
      chosen.push_back(number);
    } else {
      fail(fmt::format("asks for '{}' of {}", words[place], count));
    }
    return chosen;
  };
  view.layers = choose(1, kind->layers);
  view.heads = choose(2, kind->heads);
  return view;
}

void write_maps(const MapOptions& options, const std::vector<SentenceMaps>& maps) {
  for (const auto& path :
       write_attention(options.file, maps, figure_view(options.view, maps.front())))
    tell("wrote {}\n", path.string());
}

std::string name_of_model(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
}

}  // namespace mulciber::apps
