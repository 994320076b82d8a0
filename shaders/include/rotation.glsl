// Normalizes and rotates a head of queries or keys, by words of two neighbours: the arithmetic of
// rope_append.comp, to the same bits, for every kernel that needs it. Before including it,
// INTERLEAVED says which elements make a pair, and load(word) reads the product's result.
#ifndef MULCIBER_ROTATION_GLSL
#define MULCIBER_ROTATION_GLSL

/// The part of a head's sum of squares that one of `lanes` invocations computes.
float squares_of(uint from, uint words, uint lane, uint lanes) {
  precise vec2 squares = vec2(0);
  for (uint w = lane; w < words; w += lanes) {
    vec2 value = load(from + w);
    squares += value * value;
  }
  return squares.x + squares.y;
}

float head_scale(float squares, uint columns, float epsilon) {
  precise float mean = squares / float(columns) + epsilon;
  return 1.0 / sqrt(mean);
}

/// The two words of a rotation; `quarter`: number of such rotations per head.
uvec2 words_of_turn(uint turn, uint quarter) {
  return INTERLEAVED != 0 ? uvec2(2 * turn, 2 * turn + 1) : uvec2(turn, turn + quarter);
}

/// The rotated value of an element, from its own value and its partner's; `second`: the element is
/// the second of the pair. The arithmetic is that of rotate().
float rotated(float value, float partner, float c, float s, bool second) {
  precise float turned = second ? value * c + partner * s : value * c - partner * s;
  return turned;
}

/// Rotates both pairs of two words by two angles, given as cosines and sines.
void rotate(inout vec2 a, inout vec2 b, vec2 c, vec2 s) {
  vec2 x = INTERLEAVED != 0 ? vec2(a.x, b.x) : a, y = INTERLEAVED != 0 ? vec2(a.y, b.y) : b;
  precise vec2 turned_x = x * c - y * s, turned_y = y * c + x * s;
  a = INTERLEAVED != 0 ? vec2(turned_x.x, turned_y.x) : turned_x;
  b = INTERLEAVED != 0 ? vec2(turned_x.y, turned_y.y) : turned_y;
}

#endif
