#include "apps/attention/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "apps/attention/measures.h"
#include "apps/attention/text.h"
#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

// Width of a terminal column in ems: generous for Helvetica, right for DejaVu Sans.
constexpr double kColumnEms = 0.62;

double text_width(std::string_view text, double size) {
  return display_columns(text) * kColumnEms * size;
}

// The smallest round number that is not below `largest`, the end of the colour scale.
double round_scale_end(double largest) {
  for (const double end : {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8})
    if (largest <= end) return end;
  return 1.0;
}

FigureMap mean_map(const SentenceMaps::Kind& kind, std::size_t layer,
                   const std::vector<std::size_t>& heads) {
  const std::size_t size = kind.queries * kind.keys;
  FigureMap map(size);
  for (std::size_t i = 0; i < size; ++i) {
    double sum = 0;
    for (const std::size_t head : heads)
      sum += kind.weights[(layer * kind.heads + head) * size + i];
    if (std::isfinite(sum)) map[i] = static_cast<float>(sum / static_cast<double>(heads.size()));
  }
  return map;
}

std::string describe_measures(const FigureMap& map, std::size_t keys) {
  std::vector<float> weights;
  for (const std::optional<float>& weight : map) weights.push_back(weight.value_or(NAN));
  const MapMeasures measures = measure_map(weights, keys);
  if (!std::isfinite(measures.entropy)) return "no whole row";
  return fmt::format("{:.2f} bits, max {:.2f}", measures.entropy, measures.largest);
}

}  // namespace

Figure::Figure(const SentenceMaps& all, const SentenceMaps::Kind& shown, const SvgOptions& options)
    : maps(all), kind(shown) {
  choose_panels(options);
  choose_labels();
  lay_out();
}

double Figure::legend_height() const { return std::clamp(panel_height, 60.0, 200.0); }

std::string Figure::subtitle() const {
  std::string text = maps.model;
  for (const std::string& part :
       {maps.device, panels.size() == 1 ? panels.front().measures : std::string()}) {
    if (!text.empty() && !part.empty()) text += " \xC2\xB7 ";
    text += part;
  }
  return text;
}

std::size_t Figure::window_of(std::size_t layer) const {
  return kind.windows.empty() ? 0 : kind.windows[layer];
}

// Whether a cell belongs to the attention sink. Language models attend to the first token where
// they need nothing, often more than to all others together, and the first rows have little else.
// The colours range over the other cells.
bool Figure::at_sink(std::size_t i) const {
  return alone() && kind.keys > 3 && (i % kind.keys == 0 || i / kind.keys < 2);
}

void Figure::choose_panels(const SvgOptions& options) {
  const std::string where = fmt::format("attention figure, kind \"{}\"", kind.name);
  std::vector<std::size_t> layers = options.layers;
  if (layers.empty()) layers = {kind.layers - 1};
  for (const std::size_t layer : layers)
    if (layer >= kind.layers)
      throw ShapeError(where, fmt::format("there is no layer {}", layer),
                       fmt::format("layers go from 0 to {}", kind.layers - 1));
  for (const std::size_t head : options.heads)
    if (head >= kind.heads)
      throw ShapeError(where, fmt::format("there is no head {}", head),
                       fmt::format("heads go from 0 to {}", kind.heads - 1));

  std::vector<std::size_t> all_heads(kind.heads);
  for (std::size_t head = 0; head < kind.heads; ++head) all_heads[head] = head;
  for (const std::size_t layer : layers) {
    if (options.heads.empty()) {
      const std::string heads =
          kind.heads == 1 ? "its only head" : fmt::format("mean of {} heads", kind.heads);
      panels.push_back({fmt::format("layer {} of {}, {}", layer + 1, kind.layers, heads),
                        mean_map(kind, layer, all_heads), window_of(layer)});
    }
    for (const std::size_t head : options.heads)
      panels.push_back({fmt::format("layer {}, head {}", layer + 1, head + 1),
                        mean_map(kind, layer, {head}), window_of(layer)});
  }
  columns = std::max<std::size_t>(options.heads.size(), 1);

  double largest = 0;
  for (Panel& panel : panels) {
    panel.measures = describe_measures(panel.map, kind.keys);
    for (std::size_t i = 0; i < panel.map.size(); ++i) {
      const std::optional<float>& weight = panel.map[i];
      if (weight && !at_sink(i)) largest = std::max(largest, static_cast<double>(*weight));
      has_missing = has_missing || !weight;
    }
  }
  scale_end = round_scale_end(largest);
  for (const Panel& panel : panels)
    passed = passed || std::ranges::any_of(panel.map, [&](const auto& weight) {
               return weight && *weight > scale_end;
             });

  std::string name = alone()             ? "Self-attention"
                     : base == "encoder" ? "Encoder self-attention"
                     : base == "decoder" ? "Decoder self-attention"
                                         : "Cross-attention";
  if (base != kind.name) name += ", rollout through the layers";
  title = panels.size() == 1 ? name + ", " + panels.front().caption : name;
  description = fmt::format("{}: {}. {}: {}. Rows attend to columns; each row adds up to 1.",
                            alone() ? "Prompt" : "Source", maps.source_text,
                            alone() ? "Answer" : "Target", maps.target_text);
}

void Figure::choose_labels() {
  const bool decoder_reads = base == "decoder" && !maps.decoder_input_tokens.empty();
  rows = base == "encoder" ? &maps.source_tokens : &maps.target_tokens;
  keys = decoder_reads       ? &maps.decoder_input_tokens
         : base == "decoder" ? &maps.target_tokens
                             : &maps.source_tokens;
  row_title = alone() ? "reading" : base == "encoder" ? "source, attending" : "target, produced";
  key_title = alone()             ? "read"
              : base == "encoder" ? "source, attended to"
              : base == "decoder" ? "target, read so far"
                                  : "source, attended to";
}

void Figure::lay_out() {
  const bool single = panels.size() == 1;
  const double tokens = static_cast<double>(std::max(kind.queries, kind.keys));
  // In long texts only some tokens are labelled, so that cells need not be as high as letters.
  const double smallest = tokens > 100 ? (single ? 4 : 2) : single ? 12 : 8;
  cell = std::floor(single ? std::clamp((tokens > 100 ? 1600 : 620) / tokens, smallest, 46.0)
                           : std::clamp((tokens > 100 ? 600 : 240) / tokens, smallest, 26.0));
  font = std::clamp(cell * 0.78, 6.5, 13.0);
  label_step = std::max<std::size_t>(
      1, static_cast<std::size_t>(std::ceil(font * 1.15 / std::max(cell, 1.0) - 0.3)));

  double row_width = 0, key_width = 0;
  for (const std::string& token : *rows)
    row_width = std::max(row_width, text_width(piece_label(token, kLabelColumns), font));
  for (const std::string& token : *keys)
    key_width = std::max(key_width, text_width(piece_label(token, kLabelColumns), font));
  // Key labels lie flat where they fit, slope where cells are wide, and stand upright elsewhere.
  angle = key_width <= cell - 6 ? 0 : cell >= 20 ? 45 : 90;
  const double radians = angle * std::numbers::pi / 180;
  const double key_height = key_width * std::sin(radians) + font;
  const double overhang = angle == 45 ? std::max(0.0, key_width * std::cos(radians) - cell / 2) : 0;

  panel_width = cell * static_cast<double>(kind.keys);
  panel_height = cell * static_cast<double>(kind.queries);
  const auto across = static_cast<double>(columns);
  const double down = static_cast<double>(panels.size() / columns);
  left = kMargin + 20 + row_width + kAxisGap;
  top = kMargin + 44 + 20 + key_height + kAxisGap;
  const double panels_right = left + across * panel_width + (across - 1) * kPanelGap;
  legend_left = panels_right + std::max(24.0, overhang + 8 - (angle == 45 ? cell : 0));
  width = std::max({legend_left + 80, panels_right + overhang + kMargin,
                    2 * kMargin + text_width(title, 16), 2 * kMargin + text_width(subtitle(), 11)});
  height = top + down * panel_height + (down - 1) * (kPanelGap + kCaption) +
           (single ? 0 : kCaption) + kMargin;
  const double swatches = (masked() ? 22 : 0) + (has_missing ? 22 : 0);
  height = std::max({height, top + legend_height() + swatches + kMargin,
                     top + text_width(row_title, 11) + 20 + kMargin});
}

}  // namespace mulciber::apps
