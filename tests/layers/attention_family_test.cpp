// Forms of attention that no recorded value covers, against their definitions in double precision:
// memory-compressed keys, pooling by a learned query, keys and values from different sources, a
// graph, one key and none.
#include "layers/attention_family.h"

#include <bit>
#include <cmath>
#include <random>

#include "layers/key_pattern.h"
#include "mulciber/error.h"
#include "mulciber/graph_attention.h"
#include "tests/catch.h"
#include "tests/device_tensors.h"

using namespace mulciber;

namespace {

constexpr double kFamilyTolerance = 1e-5;

/// A (rows, length, columns) tensor and its values.
struct Array {
  Tensor tensor;
  std::vector<float> values;

  double at(uint64_t row, uint64_t position, uint64_t column) const {
    return values[(row * tensor.shape[1] + position) * tensor.shape[2] + column];
  }
};

class Inputs : public tests::DeviceTensors {
 public:
  Array array(Shape shape, std::vector<float> values) {
    return {put(shape, DataType::kF32, std::as_bytes(std::span(values))), values};
  }
  Array random(Shape shape) {
    std::vector<float> values(shape.elements());
    for (float& value : values) value = normal_(random_);
    return array(shape, std::move(values));
  }

 private:
  std::mt19937 random_{11};
  std::normal_distribution<float> normal_{0, 0.8f};
};

std::vector<float> run(const AttentionFamily& attention, const HeadColumns& q, const HeadColumns& k,
                       const HeadColumns& v) {
  ProgramBuilder builder(tests::shared_device(), "attention");
  const Tensor y = attention(builder, q, k, v);
  builder.keep(y);
  Program program = builder.build();
  program.run();
  BufferView view = program.view(y);
  view.size = y.bytes();
  return download_as<float>(tests::shared_device(), view);
}

using Matrix = std::vector<std::vector<double>>;

/// Softmax of the scores (-infinity where hidden) times values; zeros where all is hidden.
std::vector<double> weighted(const std::vector<double>& scores, const Matrix& values) {
  std::vector<double> result(values.empty() ? 0 : values[0].size(), 0.0);
  double largest = -INFINITY, sum = 0;
  for (double score : scores) largest = std::max(largest, score);
  if (largest == -INFINITY) return result;
  for (size_t j = 0; j < scores.size(); ++j) {
    const double weight = std::exp(scores[j] - largest);
    sum += weight;
    for (size_t c = 0; c < result.size(); ++c) result[c] += weight * values[j][c];
  }
  for (double& value : result) value /= sum;
  return result;
}

void check(const std::vector<float>& found, size_t first, const std::vector<double>& expected) {
  for (size_t c = 0; c < expected.size(); ++c) {
    INFO("element " << first + c);
    CHECK(std::abs(found.at(first + c) - expected[c]) <=
          kFamilyTolerance * std::max(1.0, std::abs(expected[c])));
  }
}

AttentionControl control_of(Inputs& inputs, const std::vector<uint32_t>& words) {
  return {.tensor = inputs.words(words)};
}

}  // namespace

TEST_CASE(
    "Compressed memory is a convolution over keys and values, and hides what is not whole past") {
  constexpr uint32_t kRows = 2, kLength = 12, kSize = 8, kStride = 3, kTaps = kLength / kStride;
  Inputs inputs;
  const Array q = inputs.random({kRows, kLength, kSize}),
              k = inputs.random({kRows, kLength, kSize}),
              v = inputs.random({kRows, kLength, kSize});
  // Weights in a convolution's layout, (out, in, taps).
  const Array key_weight = inputs.random({kSize, kSize, kStride}),
              value_weight = inputs.random({kSize, kSize, kStride});
  const Array bias = inputs.random({kSize});
  const auto linear = [&](const Array& weight) {
    return Linear{
        inputs
            .array({kSize, kStride * kSize}, convolution_rows(weight.values, kSize, kSize, kStride))
            .tensor,
        bias.tensor};
  };
  AttentionFamily attention{
      .options =
          {.heads = 1, .kv_heads = 1, .head_size = kSize, .value_size = kSize, .scale = 0.35f},
      .compression = KeyCompression{
          .stride = kStride, .keys = linear(key_weight), .values = linear(value_weight)}};
  const auto compress = [&](const Array& of, const Array& weight, uint32_t row) {
    Matrix result(kTaps, std::vector<double>(kSize));
    for (uint32_t j = 0; j < kTaps; ++j)
      for (uint32_t out = 0; out < kSize; ++out) {
        result[j][out] = bias.values[out];
        for (uint32_t in = 0; in < kSize; ++in)
          for (uint32_t tap = 0; tap < kStride; ++tap)
            result[j][out] += double{weight.values[(out * kSize + in) * kStride + tap]} *
                              of.at(row, j * kStride + tap, in);
      }
    return result;
  };
  for (const bool causal : {false, true}) {
    if (causal) {
      std::vector<uint32_t> words;
      for (float value : compressed_causal_mask(kLength, kLength, kStride))
        words.push_back(std::bit_cast<uint32_t>(value));
      attention.options.control = control_of(inputs, words);
      attention.options.control->bias = {0, static_cast<uint32_t>(words.size())};
      attention.options.bias = AttentionBias::kMask;
    }
    const std::vector<float> found = run(attention, {q.tensor}, {k.tensor}, {v.tensor});
    for (uint32_t row = 0; row < kRows; ++row) {
      const Matrix keys = compress(k, key_weight, row), values = compress(v, value_weight, row);
      for (uint32_t i = 0; i < kLength; ++i) {
        std::vector<double> scores(kTaps, 0.0);
        for (uint32_t j = 0; j < kTaps; ++j) {
          for (uint32_t c = 0; c < kSize; ++c)
            scores[j] += double{attention.options.scale} * q.at(row, i, c) * keys[j][c];
          if (causal && j * kStride + kStride - 1 > i) scores[j] = -INFINITY;
        }
        check(found, (row * kLength + i) * kSize, weighted(scores, values));
      }
    }
  }
  attention.options.causal = true;
  CHECK_THROWS_AS(run(attention, {q.tensor}, {k.tensor}, {v.tensor}), ShapeError);
  attention.options.causal = false;
  attention.compression->stride = 5;
  CHECK_THROWS_AS(run(attention, {q.tensor}, {k.tensor}, {v.tensor}), ShapeError);
}

TEST_CASE("A learned query pools an image grid, each image with additive scores of its own") {
  constexpr uint32_t kImages = 3, kPatches = 7 * 5, kColumns = 12, kHidden = 16;
  Inputs inputs;
  const Array query = inputs.random({1, 1, kColumns}),
              grid = inputs.random({kImages, kPatches, kColumns});
  const Array w = inputs.random({kHidden, kColumns}), u = inputs.random({kHidden, kColumns}),
              v = inputs.random({1, kHidden});
  const AttentionFamily pooling{.options = {.heads = 1,
                                            .kv_heads = 1,
                                            .head_size = kHidden,
                                            .value_size = kColumns,
                                            .score = AttentionScore::kAdditive},
                                .query = Linear{w.tensor, {}},
                                .key = Linear{u.tensor, {}},
                                .vector = v.tensor};
  const std::vector<float> found = run(pooling, {query.tensor}, {grid.tensor}, {grid.tensor});
  for (uint32_t image = 0; image < kImages; ++image) {
    std::vector<double> scores;
    Matrix values;
    for (uint32_t p = 0; p < kPatches; ++p) {
      double score = 0;
      for (uint32_t h = 0; h < kHidden; ++h) {
        double sum = 0;
        for (uint32_t c = 0; c < kColumns; ++c)
          sum += double{w.values[h * kColumns + c]} * query.values[c] +
                 double{u.values[h * kColumns + c]} * grid.at(image, p, c);
        score += v.values[h] * std::tanh(sum);
      }
      scores.push_back(score);
      values.emplace_back();
      for (uint32_t c = 0; c < kColumns; ++c) values.back().push_back(grid.at(image, p, c));
    }
    check(found, size_t{image} * kColumns, weighted(scores, values));
  }
}

TEST_CASE("Keys and values of different sources: a key-value memory, down to one key and to none") {
  constexpr uint32_t kRows = 2, kSlots = 9, kKey = 8, kValue = 5;
  Inputs inputs;
  const Array q = inputs.random({kRows, 1, kKey}), k = inputs.random({kRows, kSlots, kKey}),
              v = inputs.random({kRows, kSlots, kValue});
  const std::vector<uint32_t> counts = {1, 0, 9, 4};
  for (uint32_t first = 0; first < counts.size(); first += kRows) {
    AttentionFamily memory{
        .options = {.heads = 1, .kv_heads = 1, .head_size = kKey, .value_size = kValue}};
    memory.options.query_offset = 0;
    memory.options.control = control_of(inputs, counts);
    memory.options.control->key_counts = {first, kRows};
    const std::vector<float> found = run(memory, {q.tensor}, {k.tensor}, {v.tensor});
    for (uint32_t row = 0; row < kRows; ++row) {
      std::vector<double> scores(kSlots, -INFINITY);
      Matrix values(kSlots, std::vector<double>(kValue));
      for (uint32_t j = 0; j < kSlots; ++j) {
        for (uint32_t c = 0; c < kValue; ++c) values[j][c] = v.at(row, j, c);
        if (j >= counts[first + row]) continue;
        scores[j] = 0;
        for (uint32_t c = 0; c < kKey; ++c) scores[j] += double{q.at(row, 0, c)} * k.at(row, j, c);
      }
      check(found, size_t{row} * kValue, weighted(scores, values));
    }
  }
}

TEST_CASE("Keys of length 0 give zeros, with projections and without") {
  constexpr uint32_t kRows = 2, kQueries = 3, kSize = 8;
  Inputs inputs;
  const Array q = inputs.random({kRows, kQueries, kSize}), w = inputs.random({kSize, kSize}),
              one = inputs.random({1, 1, kSize});
  Tensor none = q.tensor, values = q.tensor;  // storage that no kernel reads
  none.shape = {kRows, 0, kSize};
  values.shape = {kRows, 0, kSize};
  AttentionFamily attention{.options = {.heads = 2,
                                        .kv_heads = 2,
                                        .head_size = kSize / 2,
                                        .value_size = kSize / 2,
                                        .causal = true}};
  const std::vector<float> zeros(kRows * kQueries * kSize, 0.0f);
  CHECK(run(attention, {q.tensor}, {none}, {none}) == zeros);
  attention.key = Linear{w.tensor, {}};
  attention.query = Linear{w.tensor, {}};
  CHECK(run(attention, {q.tensor}, {none}, {values}) == zeros);
  CHECK(run(attention, {one.tensor}, {none}, {values}) == std::vector<float>(kRows * kSize, 0.0f));
  ProgramBuilder builder(tests::shared_device(), "attention");
  CHECK_THROWS_AS(attention_map(builder, {q.tensor}, {none}, attention.options), ShapeError);
  none.shape = {kRows + 1, 0, kSize};
  CHECK_THROWS_AS(mulciber::attention(builder, {q.tensor}, {none}, {none}, attention.options),
                  ShapeError);
}

TEST_CASE(
    "Graph attention reads the neighbours that are listed, and a node without any gives zeros") {
  constexpr uint32_t kNodes = 6, kHeads = 2, kValue = 4;
  const std::vector<std::vector<uint32_t>> neighbours = {{0, 1, 5}, {1},    {0, 2, 3},
                                                         {},        {3, 4}, {0, 1, 2, 3, 4, 5}};
  Inputs inputs;
  const Array nodes = inputs.random({1, kNodes, kHeads * kValue});
  const Array to = inputs.random({kHeads, kHeads * kValue}),
              from = inputs.random({kHeads, kHeads * kValue});
  const Array ones = inputs.array({kHeads, 1}, {1, 1});
  const BlockSparseKeys list = block_sparse_keys(1, 1, neighbours);
  AttentionFamily graph{.options = {.heads = kHeads,
                                    .kv_heads = kHeads,
                                    .head_size = 1,
                                    .value_size = kValue,
                                    .score = AttentionScore::kLeaky},
                        .query = Linear{to.tensor, {}},
                        .key = Linear{from.tensor, {}},
                        .vector = ones.tensor};
  graph.options.query_offset = 0;
  graph.options.pattern = list.pattern;
  graph.options.control = control_of(inputs, list.words);
  graph.options.control->pattern = {0, static_cast<uint32_t>(list.words.size())};
  const std::vector<float> found = run(graph, {nodes.tensor}, {nodes.tensor}, {nodes.tensor});
  const auto projected = [&](const Array& weight, uint32_t node, uint32_t head) {
    double sum = 0;
    for (uint32_t c = 0; c < kHeads * kValue; ++c)
      sum += double{weight.values[head * kHeads * kValue + c]} * nodes.at(0, node, c);
    return sum;
  };
  for (uint32_t node = 0; node < kNodes; ++node)
    for (uint32_t head = 0; head < kHeads; ++head) {
      std::vector<double> scores;
      Matrix values;
      for (uint32_t neighbour : neighbours[node]) {
        const double sum = projected(to, node, head) + projected(from, neighbour, head);
        scores.push_back(sum > 0 ? sum : 0.2 * sum);
        values.emplace_back();
        for (uint32_t c = 0; c < kValue; ++c)
          values.back().push_back(nodes.at(0, neighbour, head * kValue + c));
      }
      std::vector<double> expected = weighted(scores, values);
      expected.resize(kValue, 0.0);
      check(found, (size_t{node} * kHeads + head) * kValue, expected);
    }
}

TEST_CASE("Both graph attention networks are their formulas, edge by edge") {
  // Node 2 has no edges; node 0 has one twice.
  constexpr uint32_t kNodes = 5, kColumns = 3, kHeads = 2, kSize = 4;
  const Graph graph =
      make_graph(kNodes, {{1, 0}, {1, 0}, {4, 0}, {0, 1}, {3, 3}, {0, 4}, {2, 4}, {4, 4}});
  CHECK(graph.offsets == std::vector<uint32_t>{0, 3, 4, 4, 5, 8});
  CHECK(graph.sources == std::vector<uint32_t>{1, 1, 4, 0, 3, 0, 2, 4});
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const auto draw = [&](std::vector<uint64_t> shape) {
    FloatArray array{shape, std::vector<float>(shape[0] * shape[1])};
    for (float& value : array.values) value = normal(random);
    return array;
  };
  const FloatArray x = draw({kNodes, kColumns}), w = draw({kHeads * kSize, kColumns}),
                   u = draw({kHeads * kSize, kColumns}), target = draw({kHeads, kSize}),
                   source = draw({kHeads, kSize});
  const auto projected = [&](const FloatArray& weight, uint32_t node, uint32_t row) {
    double sum = 0;
    for (uint32_t c = 0; c < kColumns; ++c)
      sum += double{weight.values[row * kColumns + c]} * x.values[node * kColumns + c];
    return sum;
  };
  const auto leaky = [](double value) { return value > 0 ? value : 0.2 * value; };
  const bool second = GENERATE(false, true), averaged = GENERATE(false, true);
  GraphAttentionDescription description =
      second ? GraphAttentionDescription{.heads = kHeads,
                                         .query = {w},
                                         .key = {u},
                                         .score_vector = target.values}
             : gat_description(w, kHeads, target.values, source.values);
  description.averaged = averaged;
  GraphAttentionLayer layer({std::shared_ptr<Device>(), &tests::shared_device()}, description,
                            graph);
  const GraphAttentionResult found = layer(x);
  CHECK(found.output.shape == std::vector<uint64_t>{kNodes, averaged ? kSize : kHeads * kSize});
  CHECK(found.weights.shape == std::vector<uint64_t>{8, kHeads});
  for (uint32_t node = 0; node < kNodes; ++node) {
    std::vector<double> mean(kSize, 0.0);
    for (uint32_t head = 0; head < kHeads; ++head) {
      std::vector<double> scores;
      Matrix values;
      for (uint32_t e = graph.offsets[node]; e < graph.offsets[node + 1]; ++e) {
        double score = 0;
        values.emplace_back();
        for (uint32_t row = head * kSize; row < (head + 1) * kSize; ++row) {
          const double q = projected(w, node, row), k = projected(w, graph.sources[e], row),
                       k2 = projected(u, graph.sources[e], row);
          score += second ? target.values[row] * leaky(q + k2)
                          : target.values[row] * q + source.values[row] * k;
          values.back().push_back(second ? k2 : k);
        }
        scores.push_back(second ? score : leaky(score));
      }
      std::vector<double> expected = weighted(scores, values);
      expected.resize(kSize, 0.0);
      for (uint32_t d = 0; d < kSize; ++d) mean[d] += expected[d] / kHeads;
      if (!averaged) check(found.output.values, (node * kHeads + head) * kSize, expected);
      double sum = 0;
      for (uint32_t e = graph.offsets[node]; e < graph.offsets[node + 1]; ++e)
        sum += double{found.weights.values[e * kHeads + head]};
      CHECK(std::abs(sum - (scores.empty() ? 0.0 : 1.0)) < kFamilyTolerance);
    }
    if (averaged) check(found.output.values, node * kSize, mean);
  }
}

TEST_CASE("A graph attention names what does not fit") {
  const auto message = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const ShapeError& error) {
      return error.what();
    }
    return "";
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(message([] {
               make_graph(3, {{0, 1}, {1, 3}});
             }),
             ContainsSubstring("edge 1 goes from node 1 to node 3"));
  const auto layer = [](const FloatArray& key, const Graph& graph) {
    return GraphAttentionLayer(
        {std::shared_ptr<Device>(), &tests::shared_device()},
        {.query = {{{2, 3}, std::vector<float>(6)}}, .key = {key}, .score_vector = {1, 1}}, graph);
  };
  const FloatArray key{{2, 3}, std::vector<float>(6)};
  const Graph graph = make_graph(2, {{0, 1}});
  CHECK_THAT(message([&] { layer(key, {{0, 2, 1}, {0}}); }), ContainsSubstring("are no graph"));
  CHECK_THAT(message([&] { layer(key, make_graph(2, {})); }), ContainsSubstring("are no graph"));
  CHECK_THAT(message([&] {
               layer({{1, 3}, {1, 2, 3}}, graph);
             }),
             ContainsSubstring("2 and 1 columns"));
  CHECK_THAT(message([&] {
               layer(key, graph)({{3, 3}, std::vector<float>(9)});
             }),
             ContainsSubstring("give (2, 3)"));
  CHECK_THAT(message([&] {
               layer(key, make_graph(2, {{0, 1}, {1, 0}}))({{2, 3}, std::vector<float>(6)},
                                                           {{1, 3}, std::vector<float>(3)});
             }),
             ContainsSubstring("give 2 or more of 3 columns"));
}
