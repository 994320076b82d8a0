#include "apps/viewer/words.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <glm/gtc/constants.hpp>

namespace mulciber::viewer {
namespace {

constexpr std::string_view kWordMark = "\xe2\x96\x81";  // U+2581
constexpr std::string_view kSpaceMark = "\xe2\x90\xa3", kLineMark = "\xe2\x86\xb5";

// The curves, in units of the scene.
constexpr float kWidth = 10, kMostEm = 0.42f;
constexpr float kQueriesHeight = 1.05f, kQueriesDepth = -0.5f;
constexpr float kKeysHeight = -1.75f, kKeysDepth = 0.9f;
constexpr float kBend = 0.9f;  // radius of the curves over their width

// Ems between words, and between pieces of one word.
constexpr float kWordGap = 0.6f, kPieceGap = 0.16f, kLeastWidth = 0.7f;
constexpr float kMostStretch = 1.8f;  // for the shorter text's gaps

constexpr float kLeastPixels = 7;  // smallest legible text

float gap_before(const std::string& token) { return continues_word(token) ? kPieceGap : kWordGap; }

/// Widths of words, and their total length with the gaps, in ems.
struct Measured {
  std::vector<Word> words;
  std::vector<float> gaps;
  float length = 0, gap_length = 0;
};

Measured measure(const std::vector<std::string>& tokens, ImFont* font) {
  Measured measured;
  for (const std::string& token : tokens) {
    Word word = {.label = label_of(token)};
    const float size = font->FontSize;
    const float pixels = font->CalcTextSizeA(size, FLT_MAX, 0, word.label.c_str()).x;
    word.width = std::max(pixels / size, kLeastWidth);
    const float gap = measured.words.empty() ? 0 : gap_before(token);
    measured.length += word.width + gap;
    measured.gap_length += gap;
    measured.gaps.push_back(gap);
    measured.words.push_back(std::move(word));
  }
  return measured;
}

std::vector<Word> place(Measured measured, float length, float em, float height, float depth) {
  // The gaps of a shorter text are stretched, up to a bound.
  const float wanted = std::min(length, measured.length * kMostStretch);
  const float stretch =
      measured.gap_length > 0 ? 1 + (wanted - measured.length) / measured.gap_length : 1;
  const float radius = kBend * kWidth;
  float at = measured.gap_length > 0 ? -wanted / 2 : -measured.length / 2;
  for (size_t i = 0; i < measured.words.size(); ++i) {
    Word& word = measured.words[i];
    at += measured.gaps[i] * stretch;
    const float angle = (at + word.width / 2) * em / radius;
    word.place = {radius * std::sin(angle), height, depth + radius * (1 - std::cos(angle))};
    word.along = {std::cos(angle), 0, std::sin(angle)};
    at += word.width;
  }
  return std::move(measured.words);
}

}  // namespace

std::string label_of(const std::string& token) {
  std::string_view rest = token;
  if (rest.size() > kWordMark.size() && rest.starts_with(kWordMark))
    rest.remove_prefix(kWordMark.size());
  std::string label;
  while (!rest.empty()) {
    if (rest.starts_with(kWordMark)) {
      label += kSpaceMark;
      rest.remove_prefix(kWordMark.size());
      continue;
    }
    if (rest[0] == '\n') {
      label += kLineMark;
    } else if (rest[0] == ' ' || rest[0] == '\t') {
      label += kSpaceMark;
    } else {
      label += rest[0];
    }
    rest.remove_prefix(1);
  }
  return label;
}

bool continues_word(const std::string& token) {
  // A word's first piece begins with the marker; a special token in angle brackets stands alone.
  return !token.starts_with(kWordMark) && !token.starts_with('<');
}

WordCurves lay_out(const std::vector<std::string>& queries, const std::vector<std::string>& keys,
                   ImFont* font) {
  Measured above = measure(queries, font), below = measure(keys, font);
  const float length = std::max(above.length, below.length);
  WordCurves curves;
  curves.em = length > 0 ? std::min(kMostEm, kWidth / length) : kMostEm;
  curves.queries = place(std::move(above), length, curves.em, kQueriesHeight, kQueriesDepth);
  curves.keys = place(std::move(below), length, curves.em, kKeysHeight, kKeysDepth);
  return curves;
}

Projected Projection::operator()(glm::vec3 place) const {
  const glm::vec4 clip = view_projection * glm::vec4(place, 1);
  if (clip.w < 0.05f) return {};
  const ImVec2 size = rectangle.size();
  return {{rectangle.min.x + (clip.x / clip.w + 1) / 2 * size.x,
           rectangle.min.y + (clip.y / clip.w + 1) / 2 * size.y},
          clip.w};
}

void draw_text_with_rim(ImDrawList& list, ImFont* font, float size, ImVec2 place, ImU32 ink,
                        ImU32 rim, const std::string& text, float scale) {
  constexpr int kAround = 8;
  for (int i = 0; i < kAround; ++i) {
    const float angle = glm::two_pi<float>() * static_cast<float>(i) / kAround;
    const ImVec2 beside(place.x + 2 * scale * std::cos(angle),
                        place.y + 2 * scale * std::sin(angle));
    list.AddText(font, size, beside, rim, text.c_str());
  }
  list.AddText(font, size, place, ink, text.c_str());
}

WordsHovered draw_words(ImDrawList& list, const WordCurves& curves, const Projection& projection,
                        const WordFonts& fonts, const Theme& theme, const WordsShown& shown,
                        float scale) {
  WordsHovered hovered;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto draw = [&](const std::vector<Word>& words, bool above, int picked, int& under) {
    for (size_t i = 0; i < words.size(); ++i) {
      const Word& word = words[i];
      const Projected end = projection(word.place);
      const float half = 0.5f * (word.width + kPieceGap) * curves.em;
      const Projected left = projection(word.place - word.along * half),
                      right = projection(word.place + word.along * half);
      if (end.depth <= 0 || left.depth <= 0 || right.depth <= 0) continue;
      // Seen from the side, words have less room: they become smaller, so that they never overlap.
      const float room = std::abs(right.place.x - left.place.x) / (word.width + kPieceGap);
      const float size = std::min(
          {curves.em * projection.pixels_per_unit / end.depth, room, fonts.large->FontSize * 1.2f});
      const bool to_come = above && i >= shown.rows;
      const bool chosen = static_cast<int>(i) == picked;
      const float strength = to_come ? 0.35f : 1;
      const Rgb ink = chosen ? theme.mark : mix(theme.background, theme.ink, strength);
      const float dot = std::max(1.5f * scale, size * 0.1f);
      list.AddCircleFilled(
          end.place, dot,
          color32(chosen ? theme.mark : mix(theme.background, theme.quiet, strength)));
      if (size < kLeastPixels * scale && !chosen) continue;
      const float shown_size = std::max(size, chosen ? 13 * scale : 0);
      ImFont* font = fonts.of(shown_size);
      const ImVec2 extent = font->CalcTextSizeA(shown_size, FLT_MAX, 0, word.label.c_str());
      const ImVec2 place(
          std::round(end.place.x - extent.x / 2),
          std::round(above ? end.place.y - extent.y - 0.22f * size : end.place.y + 0.22f * size));
      draw_text_with_rim(list, font, shown_size, place, color32(ink),
                         color32(theme.background, 0.55f), word.label, scale);
      const Rectangle box = {
          {std::min(place.x, left.place.x), place.y - 4 * scale},
          {std::max(place.x + extent.x, right.place.x), place.y + extent.y + 4 * scale}};
      if (box.contains(mouse) && projection.rectangle.contains(mouse)) under = static_cast<int>(i);
    }
  };
  const auto rail = [&](const std::vector<Word>& words) {
    std::vector<ImVec2> line;
    for (const Word& word : words) {
      const Projected at = projection(word.place);
      if (at.depth > 0) line.push_back(at.place);
    }
    list.AddPolyline(line.data(), static_cast<int>(line.size()), color32(theme.rule), 0, scale);
  };
  rail(curves.queries);
  rail(curves.keys);
  draw(curves.queries, true, shown.query, hovered.query);
  draw(curves.keys, false, shown.key, hovered.key);
  return hovered;
}

}  // namespace mulciber::viewer
