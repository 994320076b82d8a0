// The static figure: heat maps with token labels, one panel per layer and head.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numbers>
#include <optional>
#include <string_view>

#include "apps/attention/measures.h"
#include "apps/attention/page.h"
#include "apps/attention/text.h"
#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

// Evenly spaced in OKLab lightness from 0.985 to 0.27 while the hue turns from green to indigo, so
// that the order of weights survives grey printing and colour blindness. The page has the same.
constexpr std::array<std::string_view, 9> kColours = {"#f6fcf8", "#b6ead7", "#7cd2c7",
                                                      "#3db7be", "#0199b2", "#0d789f",
                                                      "#05598e", "#153a77", "#1a1c5a"};
constexpr std::string_view kMaskedColour = "#eceef1";
constexpr std::string_view kMissingColour = "#c9b8b0";
constexpr std::string_view kInk = "#1b1f24";
constexpr std::string_view kQuietInk = "#5a6470";
constexpr std::string_view kFonts = "Helvetica, Arial, DejaVu Sans, Noto Sans, sans-serif";

constexpr int kLabelColumns = 16;
// Width of a terminal column in ems: generous for Helvetica, right for DejaVu Sans.
constexpr double kColumnEms = 0.62;

std::string colour_of(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (kColours.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), kColours.size() - 2);
  const double part = at - static_cast<double>(low);
  std::string out = "#";
  for (const std::size_t digit : {1, 3, 5}) {
    const auto channel = [&](std::string_view colour) {
      return static_cast<double>(std::stoi(std::string(colour.substr(digit, 2)), nullptr, 16));
    };
    const double mixed = channel(kColours[low]) * (1 - part) + channel(kColours[low + 1]) * part;
    out += fmt::format("{:02x}", std::lround(mixed));
  }
  return out;
}

double text_width(std::string_view text, double size) {
  return display_columns(text) * kColumnEms * size;
}

// The smallest round number that is not below `largest`: the end of the colour scale.
double scale_end(double largest) {
  for (const double end : {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8})
    if (largest <= end) return end;
  return 1.0;
}

// Row-major (queries, keys); a weight that is missing in any of the heads is empty.
using Map = std::vector<std::optional<float>>;

Map mean_map(const SentenceMaps::Kind& kind, std::size_t layer,
             const std::vector<std::size_t>& heads) {
  const std::size_t size = kind.queries * kind.keys;
  Map map(size);
  for (std::size_t i = 0; i < size; ++i) {
    double sum = 0;
    for (const std::size_t head : heads)
      sum += kind.weights[(layer * kind.heads + head) * size + i];
    if (std::isfinite(sum)) map[i] = static_cast<float>(sum / static_cast<double>(heads.size()));
  }
  return map;
}

struct Panel {
  std::string caption;
  Map map;
  std::size_t window = 0;  // keys that a query sees, itself included; 0: all before it
  std::string measures = {};
};

std::string describe_measures(const Map& map, std::size_t keys) {
  std::vector<float> weights;
  for (const std::optional<float>& weight : map) weights.push_back(weight.value_or(NAN));
  const MapMeasures measures = measure_map(weights, keys);
  if (!std::isfinite(measures.entropy)) return "no whole row";
  return fmt::format("{:.2f} bits, max {:.2f}", measures.entropy, measures.largest);
}

class Figure {
 public:
  Figure(const SentenceMaps& maps, const SentenceMaps::Kind& kind, const SvgOptions& options)
      : maps_(maps), kind_(kind) {
    choose_panels(options);
    choose_labels();
    lay_out();
  }

  std::string draw() {
    add("<?xml version='1.0' encoding='UTF-8'?>\n"
        "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' "
        "viewBox='0 0 {0:.0f} {1:.0f}' role='img' font-family='{2}' fill='{3}'>\n",
        width_, height_, kFonts, kInk);
    add("<title>{}</title>\n<desc>{}</desc>\n", xml_escape(title_), xml_escape(description_));
    add("<rect width='100%' height='100%' rx='6' fill='#ffffff'/>\n");
    draw_headings();
    for (std::size_t i = 0; i < panels_.size(); ++i) draw_panel(i);
    draw_legend();
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Arguments>(arguments)...);
  }

  void choose_panels(const SvgOptions& options) {
    const std::string where = fmt::format("attention figure, kind \"{}\"", kind_.name);
    std::vector<std::size_t> layers = options.layers;
    if (layers.empty()) layers = {kind_.layers - 1};
    for (const std::size_t layer : layers)
      if (layer >= kind_.layers)
        throw ShapeError(where, fmt::format("there is no layer {}", layer),
                         fmt::format("layers go from 0 to {}", kind_.layers - 1));
    for (const std::size_t head : options.heads)
      if (head >= kind_.heads)
        throw ShapeError(where, fmt::format("there is no head {}", head),
                         fmt::format("heads go from 0 to {}", kind_.heads - 1));

    std::vector<std::size_t> all_heads(kind_.heads);
    for (std::size_t head = 0; head < kind_.heads; ++head) all_heads[head] = head;
    for (const std::size_t layer : layers) {
      if (options.heads.empty()) {
        const std::string heads =
            kind_.heads == 1 ? "its only head" : fmt::format("mean of {} heads", kind_.heads);
        panels_.push_back({fmt::format("layer {} of {}, {}", layer + 1, kind_.layers, heads),
                           mean_map(kind_, layer, all_heads), window_of(layer)});
      }
      for (const std::size_t head : options.heads)
        panels_.push_back({fmt::format("layer {}, head {}", layer + 1, head + 1),
                           mean_map(kind_, layer, {head}), window_of(layer)});
    }
    columns_ = std::max<std::size_t>(options.heads.size(), 1);

    double largest = 0;
    for (Panel& panel : panels_) {
      panel.measures = describe_measures(panel.map, kind_.keys);
      for (std::size_t i = 0; i < panel.map.size(); ++i) {
        const std::optional<float>& weight = panel.map[i];
        if (weight && !at_sink(i)) largest = std::max(largest, static_cast<double>(*weight));
        has_missing_ = has_missing_ || !weight;
      }
    }
    scale_end_ = scale_end(largest);
    for (const Panel& panel : panels_)
      passed_ = passed_ || std::ranges::any_of(panel.map, [&](const auto& weight) {
                  return weight && *weight > scale_end_;
                });

    std::string name = alone()              ? "Self-attention"
                       : base_ == "encoder" ? "Encoder self-attention"
                       : base_ == "decoder" ? "Decoder self-attention"
                                            : "Cross-attention";
    if (base_ != kind_.name) name += ", rollout through the layers";
    title_ = panels_.size() == 1 ? name + ", " + panels_.front().caption : name;
    description_ = fmt::format("{}: {}. {}: {}. Rows attend to columns; each row adds up to 1.",
                               alone() ? "Prompt" : "Source", maps_.source_text,
                               alone() ? "Answer" : "Target", maps_.target_text);
  }

  bool alone() const { return maps_.prompt_tokens > 0; }
  std::size_t window_of(std::size_t layer) const {
    return kind_.windows.empty() ? 0 : kind_.windows[layer];
  }
  // Language models weigh the first token where they need nothing, often more than all others
  // together; the first rows have little else. The colours range over the rest.
  bool at_sink(std::size_t i) const {
    return alone() && kind_.keys > 3 && (i % kind_.keys == 0 || i / kind_.keys < 2);
  }

  void choose_labels() {
    const bool decoder_reads = base_ == "decoder" && !maps_.decoder_input_tokens.empty();
    rows_ = base_ == "encoder" ? &maps_.source_tokens : &maps_.target_tokens;
    keys_ = decoder_reads        ? &maps_.decoder_input_tokens
            : base_ == "decoder" ? &maps_.target_tokens
                                 : &maps_.source_tokens;
    row_title_ = alone()              ? "reading"
                 : base_ == "encoder" ? "source, attending"
                                      : "target, produced";
    key_title_ = alone()              ? "read"
                 : base_ == "encoder" ? "source, attended to"
                 : base_ == "decoder" ? "target, read so far"
                                      : "source, attended to";
  }

  void lay_out() {
    const bool single = panels_.size() == 1;
    const double tokens = static_cast<double>(std::max(kind_.queries, kind_.keys));
    // Of long texts only some tokens are named, so that cells need not be as high as letters.
    const double smallest = tokens > 100 ? (single ? 4 : 2) : single ? 12 : 8;
    cell_ = std::floor(single ? std::clamp((tokens > 100 ? 1600 : 620) / tokens, smallest, 46.0)
                              : std::clamp((tokens > 100 ? 600 : 240) / tokens, smallest, 26.0));
    font_ = std::clamp(cell_ * 0.78, 6.5, 13.0);
    label_step_ = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::ceil(font_ * 1.15 / std::max(cell_, 1.0) - 0.3)));

    double row_width = 0, key_width = 0;
    for (const std::string& token : *rows_)
      row_width = std::max(row_width, text_width(piece_label(token, kLabelColumns), font_));
    for (const std::string& token : *keys_)
      key_width = std::max(key_width, text_width(piece_label(token, kLabelColumns), font_));
    // Key labels lie flat where they fit, slope where cells are wide, and stand where they are not.
    angle_ = key_width <= cell_ - 6 ? 0 : cell_ >= 20 ? 45 : 90;
    const double radians = angle_ * std::numbers::pi / 180;
    const double key_height = key_width * std::sin(radians) + font_;
    const double overhang =
        angle_ == 45 ? std::max(0.0, key_width * std::cos(radians) - cell_ / 2) : 0;

    panel_width_ = cell_ * static_cast<double>(kind_.keys);
    panel_height_ = cell_ * static_cast<double>(kind_.queries);
    const auto across = static_cast<double>(columns_);
    const double down = static_cast<double>(panels_.size() / columns_);
    left_ = kMargin + 20 + row_width + kAxisGap;
    top_ = kMargin + 44 + 20 + key_height + kAxisGap;
    const double panels_right = left_ + across * panel_width_ + (across - 1) * kPanelGap;
    legend_left_ = panels_right + std::max(24.0, overhang + 8 - (angle_ == 45 ? cell_ : 0));
    width_ =
        std::max({legend_left_ + 80, panels_right + overhang + kMargin,
                  2 * kMargin + text_width(title_, 16), 2 * kMargin + text_width(subtitle(), 11)});
    height_ = top_ + down * panel_height_ + (down - 1) * (kPanelGap + kCaption) +
              (single ? 0 : kCaption) + kMargin;
    const double swatches = (masked() ? 22 : 0) + (has_missing_ ? 22 : 0);
    height_ = std::max({height_, top_ + legend_height() + swatches + kMargin,
                        top_ + text_width(row_title_, 11) + 20 + kMargin});
  }

  bool masked() const { return base_ == "decoder" && kind_.keys > 1; }
  double legend_height() const { return std::clamp(panel_height_, 60.0, 200.0); }

  std::string subtitle() const {
    std::string text = maps_.model;
    for (const std::string& part :
         {maps_.device, panels_.size() == 1 ? panels_.front().measures : std::string()}) {
      if (!text.empty() && !part.empty()) text += " \xC2\xB7 ";
      text += part;
    }
    return text;
  }

  void draw_headings() {
    add("<text x='{}' y='{}' font-size='16' font-weight='bold'>{}</text>\n", kMargin, kMargin + 14,
        xml_escape(title_));
    add("<text x='{}' y='{}' font-size='11' fill='{}'>{}</text>\n", kMargin, kMargin + 32,
        kQuietInk, xml_escape(subtitle()));
    add("<text x='{:.1f}' y='{}' font-size='11' fill='{}'>{} &#8594;</text>\n", left_, kMargin + 56,
        kQuietInk, key_title_);
    add("<text transform='translate({} {:.1f}) rotate(-90)' text-anchor='end' font-size='11' "
        "fill='{}'>&#8592; {}</text>\n",
        kMargin + 10, top_, kQuietInk, row_title_);
  }

  void draw_panel(std::size_t index) {
    const std::size_t row = index / columns_, column = index % columns_;
    const double x = left_ + static_cast<double>(column) * (panel_width_ + kPanelGap);
    const double y = top_ + static_cast<double>(row) * (panel_height_ + kPanelGap + kCaption);
    if (column == 0) draw_row_labels(x, y);
    if (row == 0) draw_key_labels(x, y);
    draw_cells(panels_[index], x, y);
    if (alone() && maps_.prompt_tokens < kind_.queries) {
      const double at = static_cast<double>(maps_.prompt_tokens) * cell_;
      add("<path d='M{0:.1f} {1:.1f}h{2:.1f}M{3:.1f} {4:.1f}v{2:.1f}' stroke='{5}' "
          "stroke-dasharray='4 3'/>\n",
          x, y + at, panel_width_, x + at, y, kQuietInk);
    }
    if (panels_.size() == 1) return;
    for (const auto& [text, below] :
         {std::pair(&panels_[index].caption, 14), std::pair(&panels_[index].measures, 28)})
      add("<text x='{:.1f}' y='{:.1f}' font-size='11' fill='{}'>{}</text>\n", x,
          y + panel_height_ + below, kQuietInk, xml_escape(*text));
  }

  void draw_row_labels(double x, double y) {
    add("<g font-size='{:.1f}' text-anchor='end'>\n", font_);
    for (std::size_t i = 0; i < rows_->size(); i += label_step_)
      add("<text x='{:.1f}' y='{:.1f}'>{}</text>\n", x - kAxisGap,
          y + (static_cast<double>(i) + 0.5) * cell_ + font_ * 0.35,
          xml_escape(piece_label((*rows_)[i], kLabelColumns)));
    svg_ += "</g>\n";
    for_each_word(*rows_, [&](double first, double last) {
      add("<path d='M{0:.1f} {1:.1f}V{2:.1f}' stroke='{3}' stroke-width='1.5'/>\n",
          x - kAxisGap / 2, y + first * cell_ + 3, y + last * cell_ - 3, kQuietInk);
    });
  }

  void draw_key_labels(double x, double y) {
    add("<g font-size='{:.1f}' text-anchor='{}'>\n", font_, angle_ == 0 ? "middle" : "start");
    for (std::size_t i = 0; i < keys_->size(); i += label_step_) {
      const double centre = x + (static_cast<double>(i) + 0.5) * cell_;
      const std::string label = xml_escape(piece_label((*keys_)[i], kLabelColumns));
      if (angle_ == 0) {
        add("<text x='{:.1f}' y='{:.1f}'>{}</text>\n", centre, y - kAxisGap, label);
      } else {
        add("<text transform='translate({:.1f} {:.1f}) rotate(-{})'>{}</text>\n",
            centre + font_ * 0.35, y - kAxisGap, angle_, label);
      }
    }
    svg_ += "</g>\n";
    for_each_word(*keys_, [&](double first, double last) {
      add("<path d='M{0:.1f} {1:.1f}H{2:.1f}' stroke='{3}' stroke-width='1.5'/>\n",
          x + first * cell_ + 3, y - kAxisGap / 2, x + last * cell_ - 3, kQuietInk);
    });
  }

  // Calls `visit(first, end)` for each word of two or more pieces.
  template <typename Visit>
  static void for_each_word(const std::vector<std::string>& tokens, const Visit& visit) {
    for (std::size_t first = 0; first < tokens.size(); ++first) {
      if (!begins_word(tokens[first])) continue;
      std::size_t end = first + 1;
      while (end < tokens.size() && continues_word(tokens[end])) ++end;
      if (end - first > 1) visit(static_cast<double>(first), static_cast<double>(end));
      first = end - 1;
    }
  }

  void draw_cells(const Panel& panel, double x, double y) {
    const Map& map = panel.map;
    // The ground is the colour of zero, so that cells of no weight need no rectangle of their own.
    const std::string ground = colour_of(0);
    add("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='{}'/>\n"
        "<g shape-rendering='crispEdges'>\n",
        x, y, panel_width_, panel_height_, ground);
    for (std::size_t i = 0; i < map.size();) {
      const std::string fill = cell_colour(panel, i);
      std::size_t end = i + 1;  // of a run of cells of one colour
      while (end % kind_.keys != 0 && cell_colour(panel, end) == fill) ++end;
      if (fill != ground)
        add("<rect x='{:.1f}' y='{:.1f}' width='{}' height='{}' fill='{}'/>\n",
            x + static_cast<double>(i % kind_.keys) * cell_,
            y + static_cast<double>(i / kind_.keys) * cell_, static_cast<double>(end - i) * cell_,
            cell_, fill);
      i = end;
    }
    svg_ += "</g>\n";
    if (cell_ >= 32) draw_numbers(map, x, y);
    add("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='none' stroke='{}' "
        "stroke-opacity='0.35'/>\n",
        x, y, panel_width_, panel_height_, kQuietInk);
  }

  std::string cell_colour(const Panel& panel, std::size_t i) const {
    const Map& map = panel.map;
    if (!map[i]) return std::string(kMissingColour);
    const std::size_t query = i / kind_.keys, key = i % kind_.keys;
    const bool hidden = key > query || (panel.window > 0 && key + panel.window <= query);
    if (masked() && *map[i] == 0 && hidden) return std::string(kMaskedColour);
    return colour_of(*map[i] / scale_end_);
  }

  void draw_numbers(const Map& map, double x, double y) {
    add("<g font-size='{:.1f}' text-anchor='middle'>\n", cell_ * 0.26);
    for (std::size_t i = 0; i < map.size(); ++i) {
      if (map[i] && *map[i] < 0.005f) continue;
      const std::string number = map[i] ? fmt::format("{:.2f}", *map[i]) : "\xC3\x97";  // U+00D7
      // From here up the scale white has more contrast than the ink.
      const bool dark = map[i] && *map[i] / scale_end_ > 0.57;
      add("<text x='{:.1f}' y='{:.1f}' fill='{}'>{}</text>\n",
          x + (static_cast<double>(i % kind_.keys) + 0.5) * cell_,
          y + (static_cast<double>(i / kind_.keys) + 0.5) * cell_ + cell_ * 0.09,
          dark ? "#ffffff" : kInk, number);
    }
    svg_ += "</g>\n";
  }

  void draw_legend() {
    const double x = legend_left_, y = top_, height = legend_height();
    svg_ += "<defs><linearGradient id='scale' x1='0' y1='1' x2='0' y2='0'>";
    for (std::size_t i = 0; i < kColours.size(); ++i)
      add("<stop offset='{}' stop-color='{}'/>", static_cast<double>(i) / (kColours.size() - 1),
          kColours[i]);
    svg_ += "</linearGradient></defs>\n";
    add("<rect x='{:.1f}' y='{:.1f}' width='12' height='{:.1f}' fill='url(#scale)' "
        "stroke='{}' stroke-opacity='0.35'/>\n"
        "<g font-size='11' fill='{}'>\n",
        x, y, height, kQuietInk, kQuietInk);
    for (const double share : {0.0, 0.5, 1.0})
      add("<text x='{:.1f}' y='{:.1f}'>{}{:.4g}</text>\n", x + 18,
          y + (1 - share) * height +
              (share == 1   ? 9
               : share == 0 ? 0
                            : 4),
          share == 1 && passed_ ? "\xE2\x89\xA5 " : "", share * scale_end_);
    double below = y + height + 10;
    const auto swatch = [&](std::string_view fill, std::string_view label) {
      add("<rect x='{:.1f}' y='{:.1f}' width='12' height='12' fill='{}'/>"
          "<text x='{:.1f}' y='{:.1f}'>{}</text>\n",
          x, below, fill, x + 18, below + 10, label);
      below += 22;
    };
    if (masked()) swatch(kMaskedColour, "masked");
    if (has_missing_) swatch(kMissingColour, "missing");
    svg_ += "</g>\n";
  }

  static constexpr double kMargin = 18, kAxisGap = 9, kPanelGap = 12, kCaption = 32;

  const SentenceMaps& maps_;
  const SentenceMaps::Kind& kind_;
  const std::string_view base_ = base_kind(kind_.name);
  const std::vector<std::string>* rows_ = nullptr;
  const std::vector<std::string>* keys_ = nullptr;
  std::vector<Panel> panels_;
  std::size_t columns_ = 1;
  std::string title_, description_, row_title_, key_title_, svg_;
  bool has_missing_ = false, passed_ = false;  // passed_: a weight is above the scale's end
  std::size_t label_step_ = 1;
  double scale_end_ = 1, cell_ = 0, font_ = 0, left_ = 0, top_ = 0, legend_left_ = 0, width_ = 0,
         height_ = 0, panel_width_ = 0, panel_height_ = 0;
  int angle_ = 0;
};

}  // namespace

std::string to_svg(const SentenceMaps& maps, const SvgOptions& options) {
  check_attention(maps);
  if (options.kind.empty()) return Figure(maps, first_view(maps), options).draw();
  const auto kind = std::ranges::find(maps.kinds, options.kind, &SentenceMaps::Kind::name);
  if (kind == maps.kinds.end())
    throw ShapeError("attention figure", fmt::format("there is no kind \"{}\"", options.kind),
                     "ask for encoder, decoder or cross, as far as the model has them, or a "
                     "rollout such as encoder_rollout");
  return Figure(maps, *kind, options).draw();
}

}  // namespace mulciber::apps
