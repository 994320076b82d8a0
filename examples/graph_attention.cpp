// Zachary's karate club (1977): 34 members, who met whom outside of the club, and which side each
// took when it split. A graph attention network of two layers, which tools/train/karate.py trained
// on the sides of two members, predicts the sides of all; its attention is drawn.
//   graph_attention FOLDER [DRAWING.svg]
// FOLDER is examples/karate. Half of the line between two members belongs to each of them, and is
// as wide as the attention that this member pays to the other in the first layer.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "mulciber/mulciber.h"

namespace {

using mulciber::FloatArray;

std::ifstream open_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened; give the folder examples/karate");
  return file;
}

/// A name, extents up to the end of the line, and numbers.
std::map<std::string, FloatArray> read_arrays(const std::string& path) {
  std::ifstream file = open_file(path);
  std::map<std::string, FloatArray> arrays;
  for (std::string name; file >> name;) {
    FloatArray& array = arrays[name];
    uint64_t elements = 1;
    for (uint64_t extent; file.peek() != '\n' && file >> extent; elements *= extent)
      array.shape.push_back(extent);
    if (elements > 1000000) throw std::runtime_error(path + ": " + name + " is too large");
    array.values.resize(elements);
    for (float& value : array.values) file >> value;
    if (!file) throw std::runtime_error(path + ": the numbers of " + name + " end too early");
  }
  return arrays;
}

mulciber::GraphAttentionDescription layer_of(const std::map<std::string, FloatArray>& arrays,
                                             const std::string& name) {
  const auto of = [&](const char* part) { return arrays.at(name + part); };
  const FloatArray vector = of(".vector");
  return {.heads = static_cast<uint32_t>(vector.shape.at(0)),
          .query = {of(".query.weight"), of(".query.bias").values},
          .key = {of(".key.weight"), of(".key.bias").values},
          .score_vector = vector.values};
}

/// Positions in the unit square: members who met attract each other, all repel each other
/// (Fruchterman and Reingold 1991, doi:10.1002/spe.4380211102).
std::vector<std::pair<double, double>> places_of(const mulciber::Graph& graph) {
  const size_t nodes = graph.offsets.size() - 1;
  const double turn = 6.283185307179586 / static_cast<double>(nodes);
  std::vector<std::pair<double, double>> at(nodes);
  for (size_t n = 0; n < nodes; ++n)
    at[n] = {std::cos(turn * static_cast<double>(n)), std::sin(turn * static_cast<double>(n))};
  const double spring = 2 / std::sqrt(static_cast<double>(nodes));
  for (double step = 0.2; step > 0.001; step *= 0.99) {
    auto moved = at;
    for (size_t n = 0; n < nodes; ++n) {
      double x = 0, y = 0;
      const auto add = [&](size_t other, bool pull) {
        const double dx = at[other].first - at[n].first, dy = at[other].second - at[n].second;
        const double distance = std::max(std::hypot(dx, dy), 1e-6);
        const double force = pull ? distance / spring : -spring * spring / (distance * distance);
        x += dx * force;
        y += dy * force;
      };
      for (size_t other = 0; other < nodes; ++other)
        if (other != n) add(other, false);
      for (uint32_t e = graph.offsets[n]; e < graph.offsets[n + 1]; ++e)
        if (graph.sources[e] != n) add(graph.sources[e], true);
      const double length = std::max(std::hypot(x, y), 1e-9), part = std::min(step, length);
      moved[n].first += x / length * part;
      moved[n].second += y / length * part;
    }
    at = moved;
  }
  const auto [left, right] = std::ranges::minmax(at, {}, &std::pair<double, double>::first);
  const double x0 = left.first, width = right.first - left.first;
  const auto [top, bottom] = std::ranges::minmax(at, {}, &std::pair<double, double>::second);
  const double y0 = top.second, height = bottom.second - top.second;
  for (auto& [x, y] : at) {
    x = (x - x0) / width;
    y = (y - y0) / height;
  }
  return at;
}

void draw(const std::string& path, const mulciber::Graph& graph,
          const std::vector<float>& attention, const std::vector<bool>& side,
          const std::vector<bool>& predicted) {
  constexpr const char* kColors[] = {"#2a78b8", "#d9722b"};
  const auto places = places_of(graph);
  const auto x = [&](size_t n) { return 30 + 640 * places[n].first; };
  const auto y = [&](size_t n) { return 30 + 440 * places[n].second; };
  std::ofstream file(path);
  file
      << R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 500" font-family="sans-serif")"
         R"( font-size="11" text-anchor="middle"><rect width="700" height="500" fill="white"/>)"
      << '\n';
  for (size_t n = 0; n < places.size(); ++n) {
    for (uint32_t e = graph.offsets[n]; e < graph.offsets[n + 1]; ++e) {
      const uint32_t other = graph.sources[e];
      if (other == n) continue;
      file << "<line x1='" << x(n) << "' y1='" << y(n) << "' x2='" << (x(n) + x(other)) / 2
           << "' y2='" << (y(n) + y(other)) / 2 << "' stroke='" << kColors[predicted[n]]
           << "' stroke-opacity='0.6' stroke-width='" << 0.3 + 12 * attention[e] << "'><title>" << n
           << " attends to " << other << ": " << attention[e] << "</title></line>\n";
    }
  }
  for (size_t n = 0; n < places.size(); ++n) {
    file << "<circle cx='" << x(n) << "' cy='" << y(n) << "' r='11' fill='" << kColors[predicted[n]]
         << "' stroke='" << kColors[side[n]] << "' stroke-width='4'/><text x='" << x(n) << "' y='"
         << y(n) + 4 << "' fill='white'>" << n << "</text>\n";
  }
  file << "</svg>\n";
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

/// The largest difference from the training script's results in double precision.
float largest_difference(const std::map<std::string, FloatArray>& expected,
                         const mulciber::GraphAttentionResult& near,
                         const mulciber::GraphAttentionResult& far) {
  float largest = 0;
  const auto compare = [&](const char* name, const FloatArray& found) {
    const FloatArray& array = expected.at(name);
    if (array.shape != found.shape) throw std::runtime_error(std::string(name) + ": other extents");
    for (size_t i = 0; i < found.values.size(); ++i)
      largest = std::fmax(largest, std::fabs(found.values[i] - array.values[i]));
  };
  compare("first.weights", near.weights);
  compare("second.weights", far.weights);
  compare("logits", far.output);
  return largest;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: graph_attention FOLDER [DRAWING.svg]\n");
    return 2;
  }
  const std::string folder = argv[1];
  std::vector<bool> side;
  std::ifstream clubs = open_file(folder + "/clubs.txt");
  for (int club; clubs >> club;) side.push_back(club == 1);
  std::vector<mulciber::GraphEdge> pairs;
  std::ifstream edges = open_file(folder + "/edges.txt");
  for (mulciber::GraphEdge edge; edges >> edge.source >> edge.target;) pairs.push_back(edge);
  const auto nodes = static_cast<uint32_t>(side.size());
  const mulciber::Graph graph =
      mulciber::make_graph(nodes, pairs, {.both_ways = true, .self_loops = true});

  const auto device = mulciber::open_device();
  const auto arrays = read_arrays(folder + "/model.txt");
  mulciber::GraphAttentionLayer first(device, layer_of(arrays, "first"), graph);
  mulciber::GraphAttentionDescription last = layer_of(arrays, "second");
  last.averaged = true;
  mulciber::GraphAttentionLayer second(device, last, graph);

  // Each member's only feature is its number.
  FloatArray x{{nodes, nodes}, std::vector<float>(size_t{nodes} * nodes)};
  for (size_t n = 0; n < nodes; ++n) x.values[n * nodes + n] = 1;
  mulciber::GraphAttentionResult near = first(x);
  for (float& value : near.output.values) value = value > 0 ? value : std::expm1(value);  // ELU
  const mulciber::GraphAttentionResult far = second(near.output);

  std::vector<bool> predicted;
  size_t right = 0;
  for (size_t n = 0; n < nodes; ++n) {
    predicted.push_back(far.output.values[2 * n + 1] > far.output.values[2 * n]);
    right += predicted[n] == side[n];
  }
  std::printf("%zu of %u members on the side they took\n", right, nodes);
  std::printf(
      "largest difference from double precision: %.1e\n",
      static_cast<double>(largest_difference(read_arrays(folder + "/expected.txt"), near, far)));
  const size_t heads = near.weights.shape[1];
  std::vector<float> attention(graph.sources.size());
  for (size_t e = 0; e < attention.size(); ++e)
    for (size_t head = 0; head < heads; ++head)
      attention[e] += near.weights.values[e * heads + head] / static_cast<float>(heads);
  for (size_t n = 0; n < nodes; ++n) {
    uint32_t most = graph.offsets[n];
    for (uint32_t e = most; e < graph.offsets[n + 1]; ++e)
      if (graph.sources[e] != n && (attention[e] > attention[most] || graph.sources[most] == n))
        most = e;
    std::printf("member %2zu, side %d: attends most to %2u (%.3f)\n", n, int{predicted[n]},
                graph.sources[most], static_cast<double>(attention[most]));
  }
  if (argc == 3) draw(argv[2], graph, attention, side, predicted);
} catch (const std::exception& error) {
  std::fprintf(stderr, "graph_attention: %s\n", error.what());
  return 1;
}
