// Words on two curves: queries above, keys below, and their labels over the image.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <imgui.h>
#include <glm/glm.hpp>

#include "apps/viewer/camera.h"
#include "apps/viewer/theme.h"

namespace mulciber::viewer {

/// A piece of a vocabulary as a reader sees it: without the marker of a word's start, and with
/// symbols for spaces and line breaks.
std::string label_of(const std::string& token);
/// Whether a token continues the word before it.
bool continues_word(const std::string& token);

struct Word {
  std::string label;
  glm::vec3 place = {};  // where its arcs end
  glm::vec3 along = {};  // direction of the curve
  float width = 0;       // ems
};

struct WordCurves {
  std::vector<Word> queries, keys;
  float em = 0;  // units of the scene
};

/// Both curves have the same width, and words on them keep their relative distances.
WordCurves lay_out(const std::vector<std::string>& queries, const std::vector<std::string>& keys,
                   ImFont* font);

/// A part of the window, in pixels.
struct Rectangle {
  ImVec2 min, max;
  ImVec2 size() const { return {max.x - min.x, max.y - min.y}; }
  bool contains(ImVec2 point) const {
    return point.x >= min.x && point.x < max.x && point.y >= min.y && point.y < max.y;
  }
};

/// The place of a point of the scene in the window, and its depth; a depth of 0: behind the camera.
struct Projected {
  ImVec2 place;
  float depth = 0;
};
struct Projection {
  glm::mat4 view_projection;
  Rectangle rectangle;
  float pixels_per_unit = 0;
  Projected operator()(glm::vec3 place) const;
};

struct WordFonts {
  ImFont* small = nullptr;
  ImFont* large = nullptr;
  /// The font for a size: the smallest that is large enough, or the large one.
  ImFont* of(float size) const { return size <= small->FontSize ? small : large; }
};

struct WordsShown {
  size_t rows = 0;  // from here on queries have not been chosen yet
  int query = -1;   // whose arcs are shown; -1: all arcs
  int key = -1;
};
/// The word under the mouse; -1: none.
struct WordsHovered {
  int query = -1, key = -1;
};
WordsHovered draw_words(ImDrawList& list, const WordCurves& curves, const Projection& projection,
                        const WordFonts& fonts, const Theme& theme, const WordsShown& shown,
                        float scale);

/// Draws text with a rim of the background's color, so that it is legible in front of anything.
void draw_text_with_rim(ImDrawList& list, ImFont* font, float size, ImVec2 place, ImU32 ink,
                        ImU32 rim, const std::string& text, float scale);

}  // namespace mulciber::viewer
