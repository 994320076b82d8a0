// The inputs of all drawing of maps: the maps of one kind of attention, an array layer for each
// head of each layer of the network, and the positions of words and tiles.

struct Tile {
  vec4 center;  // its fourth number: the map
  vec4 right;   // half of its width; its fourth number: half of its height, which is upright
};

layout(set = 0, binding = 0) uniform sampler2DArray maps;
layout(set = 0, binding = 1, std430) readonly buffer Words { vec4 words[]; };  // queries, then keys
layout(set = 0, binding = 2, std430) readonly buffer Tiles { Tile tiles[]; };
layout(set = 0, binding = 3, std140) uniform Colors {
  vec4 weights[9];  // colors of the weights 0, 1/8, ..., 1
  vec4 background, rule, mark;
};

layout(push_constant) uniform Push {
  mat4 view_projection;
  vec2 viewport;    // pixels
  float threshold;  // arcs of smaller weights are not drawn
  float width;      // pixels from edge to edge of an arc of weight 1 at a distance of 1
  uint map;         // the picked map
  uint queries;
  uint keys;
  uint rows;        // queries that exist at this step
  int focus_query;  // arcs of other queries are drawn fainter; -1: none
  int focus_key;
  float range;  // the weight that has the last color
  float scale;  // pixels for each pixel of the sizes in the code
};

vec3 color_of(float weight) {
  const float at = clamp(weight / range, 0.0, 1.0) * 8.0;
  const int low = min(int(at), 7);
  return mix(weights[low].rgb, weights[low + 1].rgb, at - float(low));
}
