// The static figure, to_svg() of page.h: heat maps with token labels, one panel per layer and head.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "apps/attention/figure.h"
#include "apps/attention/page.h"
#include "apps/attention/text.h"
#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

// The colours are evenly spaced in OKLab lightness from 0.985 to 0.27 while the hue turns from
// green to indigo, so that the order of weights survives grey printing and colour blindness. The
// page has the same colours.
constexpr std::array<std::string_view, 9> kColours = {"#f6fcf8", "#b6ead7", "#7cd2c7",
                                                      "#3db7be", "#0199b2", "#0d789f",
                                                      "#05598e", "#153a77", "#1a1c5a"};
constexpr std::string_view kMaskedColour = "#eceef1";
constexpr std::string_view kMissingColour = "#c9b8b0";
constexpr std::string_view kInk = "#1b1f24";
constexpr std::string_view kQuietInk = "#5a6470";
constexpr std::string_view kFonts = "Helvetica, Arial, DejaVu Sans, Noto Sans, sans-serif";

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

class FigureWriter {
 public:
  explicit FigureWriter(const Figure& figure) : figure_(figure) {}

  std::string draw() {
    add("<?xml version='1.0' encoding='UTF-8'?>\n"
        "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' "
        "viewBox='0 0 {0:.0f} {1:.0f}' role='img' font-family='{2}' fill='{3}'>\n",
        figure_.width, figure_.height, kFonts, kInk);
    add("<title>{}</title>\n<desc>{}</desc>\n", xml_escape(figure_.title),
        xml_escape(figure_.description));
    add("<rect width='100%' height='100%' rx='6' fill='#ffffff'/>\n");
    draw_headings();
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) draw_panel(i);
    draw_legend();
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Arguments>(arguments)...);
  }

  void draw_headings() {
    add("<text x='{}' y='{}' font-size='16' font-weight='bold'>{}</text>\n", Figure::kMargin,
        Figure::kMargin + 14, xml_escape(figure_.title));
    add("<text x='{}' y='{}' font-size='11' fill='{}'>{}</text>\n", Figure::kMargin,
        Figure::kMargin + 32, kQuietInk, xml_escape(figure_.subtitle()));
    add("<text x='{:.1f}' y='{}' font-size='11' fill='{}'>{} &#8594;</text>\n", figure_.left,
        Figure::kMargin + 56, kQuietInk, figure_.key_title);
    add("<text transform='translate({} {:.1f}) rotate(-90)' text-anchor='end' font-size='11' "
        "fill='{}'>&#8592; {}</text>\n",
        Figure::kMargin + 10, figure_.top, kQuietInk, figure_.row_title);
  }

  void draw_panel(std::size_t index) {
    const std::size_t row = index / figure_.columns, column = index % figure_.columns;
    const double x =
        figure_.left + static_cast<double>(column) * (figure_.panel_width + Figure::kPanelGap);
    const double y =
        figure_.top +
        static_cast<double>(row) * (figure_.panel_height + Figure::kPanelGap + Figure::kCaption);
    if (column == 0) draw_row_labels(x, y);
    if (row == 0) draw_key_labels(x, y);
    draw_cells(figure_.panels[index], x, y);
    if (figure_.alone() && figure_.maps.prompt_tokens < figure_.kind.queries) {
      const double at = static_cast<double>(figure_.maps.prompt_tokens) * figure_.cell;
      add("<path d='M{0:.1f} {1:.1f}h{2:.1f}M{3:.1f} {4:.1f}v{2:.1f}' stroke='{5}' "
          "stroke-dasharray='4 3'/>\n",
          x, y + at, figure_.panel_width, x + at, y, kQuietInk);
    }
    if (figure_.panels.size() == 1) return;
    for (const auto& [text, below] : {std::pair(&figure_.panels[index].caption, 14),
                                      std::pair(&figure_.panels[index].measures, 28)})
      add("<text x='{:.1f}' y='{:.1f}' font-size='11' fill='{}'>{}</text>\n", x,
          y + figure_.panel_height + below, kQuietInk, xml_escape(*text));
  }

  void draw_row_labels(double x, double y) {
    add("<g font-size='{:.1f}' text-anchor='end'>\n", figure_.font);
    for (std::size_t i = 0; i < figure_.rows->size(); i += figure_.label_step)
      add("<text x='{:.1f}' y='{:.1f}'>{}</text>\n", x - Figure::kAxisGap,
          y + (static_cast<double>(i) + 0.5) * figure_.cell + figure_.font * 0.35,
          xml_escape(piece_label((*figure_.rows)[i], Figure::kLabelColumns)));
    svg_ += "</g>\n";
    for_each_word(*figure_.rows, [&](double first, double last) {
      add("<path d='M{0:.1f} {1:.1f}V{2:.1f}' stroke='{3}' stroke-width='1.5'/>\n",
          x - Figure::kAxisGap / 2, y + first * figure_.cell + 3, y + last * figure_.cell - 3,
          kQuietInk);
    });
  }

  void draw_key_labels(double x, double y) {
    add("<g font-size='{:.1f}' text-anchor='{}'>\n", figure_.font,
        figure_.angle == 0 ? "middle" : "start");
    for (std::size_t i = 0; i < figure_.keys->size(); i += figure_.label_step) {
      const double centre = x + (static_cast<double>(i) + 0.5) * figure_.cell;
      const std::string label = xml_escape(piece_label((*figure_.keys)[i], Figure::kLabelColumns));
      if (figure_.angle == 0) {
        add("<text x='{:.1f}' y='{:.1f}'>{}</text>\n", centre, y - Figure::kAxisGap, label);
      } else {
        add("<text transform='translate({:.1f} {:.1f}) rotate(-{})'>{}</text>\n",
            centre + figure_.font * 0.35, y - Figure::kAxisGap, figure_.angle, label);
      }
    }
    svg_ += "</g>\n";
    for_each_word(*figure_.keys, [&](double first, double last) {
      add("<path d='M{0:.1f} {1:.1f}H{2:.1f}' stroke='{3}' stroke-width='1.5'/>\n",
          x + first * figure_.cell + 3, y - Figure::kAxisGap / 2, x + last * figure_.cell - 3,
          kQuietInk);
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
    const FigureMap& map = panel.map;
    // The background has the colour of zero, so that cells without weight need no rectangle of
    // their own.
    const std::string ground = colour_of(0);
    add("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='{}'/>\n"
        "<g shape-rendering='crispEdges'>\n",
        x, y, figure_.panel_width, figure_.panel_height, ground);
    for (std::size_t i = 0; i < map.size();) {
      const std::string fill = cell_colour(panel, i);
      std::size_t end = i + 1;  // end of a run of cells of one colour
      while (end % figure_.kind.keys != 0 && cell_colour(panel, end) == fill) ++end;
      if (fill != ground)
        add("<rect x='{:.1f}' y='{:.1f}' width='{}' height='{}' fill='{}'/>\n",
            x + static_cast<double>(i % figure_.kind.keys) * figure_.cell,
            y + static_cast<double>(i / figure_.kind.keys) * figure_.cell,
            static_cast<double>(end - i) * figure_.cell, figure_.cell, fill);
      i = end;
    }
    svg_ += "</g>\n";
    if (figure_.cell >= 32) draw_numbers(map, x, y);
    add("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='none' stroke='{}' "
        "stroke-opacity='0.35'/>\n",
        x, y, figure_.panel_width, figure_.panel_height, kQuietInk);
  }

  std::string cell_colour(const Panel& panel, std::size_t i) const {
    const FigureMap& map = panel.map;
    if (!map[i]) return std::string(kMissingColour);
    const std::size_t query = i / figure_.kind.keys, key = i % figure_.kind.keys;
    const bool hidden = key > query || (panel.window > 0 && key + panel.window <= query);
    if (figure_.masked() && *map[i] == 0 && hidden) return std::string(kMaskedColour);
    return colour_of(*map[i] / figure_.scale_end);
  }

  void draw_numbers(const FigureMap& map, double x, double y) {
    add("<g font-size='{:.1f}' text-anchor='middle'>\n", figure_.cell * 0.26);
    for (std::size_t i = 0; i < map.size(); ++i) {
      if (map[i] && *map[i] < 0.005f) continue;
      const std::string number = map[i] ? fmt::format("{:.2f}", *map[i]) : "\xC3\x97";  // U+00D7
      // Above this point of the scale white has more contrast than the ink.
      const bool dark = map[i] && *map[i] / figure_.scale_end > 0.57;
      add("<text x='{:.1f}' y='{:.1f}' fill='{}'>{}</text>\n",
          x + (static_cast<double>(i % figure_.kind.keys) + 0.5) * figure_.cell,
          y + (static_cast<double>(i / figure_.kind.keys) + 0.5) * figure_.cell +
              figure_.cell * 0.09,
          dark ? "#ffffff" : kInk, number);
    }
    svg_ += "</g>\n";
  }

  void draw_legend() {
    const double x = figure_.legend_left, y = figure_.top, height = figure_.legend_height();
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
          share == 1 && figure_.passed ? "\xE2\x89\xA5 " : "", share * figure_.scale_end);
    double below = y + height + 10;
    const auto swatch = [&](std::string_view fill, std::string_view label) {
      add("<rect x='{:.1f}' y='{:.1f}' width='12' height='12' fill='{}'/>"
          "<text x='{:.1f}' y='{:.1f}'>{}</text>\n",
          x, below, fill, x + 18, below + 10, label);
      below += 22;
    };
    if (figure_.masked()) swatch(kMaskedColour, "masked");
    if (figure_.has_missing) swatch(kMissingColour, "missing");
    svg_ += "</g>\n";
  }

  const Figure& figure_;
  std::string svg_;
};

}  // namespace

std::string to_svg(const SentenceMaps& maps, const SvgOptions& options) {
  check_attention(maps);
  if (options.kind.empty()) return FigureWriter(Figure(maps, first_view(maps), options)).draw();
  const auto kind = std::ranges::find(maps.kinds, options.kind, &SentenceMaps::Kind::name);
  if (kind == maps.kinds.end())
    throw ShapeError("attention figure", fmt::format("there is no kind \"{}\"", options.kind),
                     "ask for encoder, decoder or cross, as far as the model has them, or a "
                     "rollout such as encoder_rollout");
  return FigureWriter(Figure(maps, *kind, options)).draw();
}

}  // namespace mulciber::apps
