// The contents and layout of the static figure, before any of it is drawn (apps/attention/svg.cpp
// draws it).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/attention/page.h"

namespace mulciber::apps {

/// Row-major (queries, keys); a weight that is missing in any of the heads has no value.
using FigureMap = std::vector<std::optional<float>>;

struct Panel {
  std::string caption;
  FigureMap map;
  std::size_t window = 0;  // keys that a query sees, its own included; 0: all before it
  std::string measures = {};
};

/// The figure of one kind of attention: panels, titles, labels, and the layout in SVG's user units.
/// It refers to the maps from which it was made.
struct Figure {
  /// Throws ShapeError for a layer or head that the maps do not have.
  Figure(const SentenceMaps& maps, const SentenceMaps::Kind& kind, const SvgOptions& options);

  static constexpr double kMargin = 18, kAxisGap = 9, kPanelGap = 12, kCaption = 32;
  /// Terminal columns after which a label ends in an ellipsis.
  static constexpr int kLabelColumns = 16;

  /// Whether the maps are of a decoder-only model.
  bool alone() const { return maps.prompt_tokens > 0; }
  /// Whether the figure has masked cells.
  bool masked() const { return base == "decoder" && kind.keys > 1; }
  double legend_height() const;
  std::string subtitle() const;

  const SentenceMaps& maps;
  const SentenceMaps::Kind& kind;
  const std::string_view base = base_kind(kind.name);
  const std::vector<std::string>* rows = nullptr;  // the tokens of queries and of keys
  const std::vector<std::string>* keys = nullptr;
  std::vector<Panel> panels;  // `columns` of them side by side
  std::size_t columns = 1;
  std::string title, description, row_title, key_title;
  bool has_missing = false,
       passed = false;         // passed: a weight is above the end of the colour scale
  std::size_t label_step = 1;  // every label_step-th token has a label
  double scale_end = 1;        // the weight that has the last colour
  double cell = 0, font = 0, left = 0, top = 0, legend_left = 0, width = 0, height = 0,
         panel_width = 0, panel_height = 0;
  int angle = 0;  // angle of the keys' labels, in degrees

 private:
  void choose_panels(const SvgOptions& options);
  void choose_labels();
  void lay_out();
  std::size_t window_of(std::size_t layer) const;
  bool at_sink(std::size_t i) const;
};

}  // namespace mulciber::apps
