// Cases and reference of edge_softmax and edge_sum; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/attention_reference.h"
#include "mulciber/error.h"
#include "ops/graph.h"

namespace mulciber::conformance {
namespace {

/// Words before the graph, and columns before queries, keys and values.
constexpr uint32_t kGraphSpare = 3;

struct GraphVariant {
  uint32_t nodes = 1, neighbors = 1, degree = 1;
  uint32_t heads = 1, size = 1;
  bool unequal = false;  // degrees from 0 to three times `neighbors`
  AttentionScore score = AttentionScore::kLeaky;
  double deviation = 1;
  bool averaged = false;  // for edge_sum
  bool exact = false;     // for edge_sum
  uint32_t span = 0;      // neighbours are among the next nodes; 0: among all
};

/// Offsets, sources, and the score vector, in words.
struct GraphWords {
  ControlWords words;
  EdgeList edges;
  ControlArray<float> vector;

  uint32_t offset(uint64_t node) const { return words.get(edges.offsets, node); }
  uint32_t source(uint64_t edge) const { return words.get(edges.sources, edge); }
};

/// Makes equal graphs for equal variants, because the case's shape depends on the graph.
GraphWords graph_of(const GraphVariant& v) {
  std::mt19937 random(v.nodes * 31 + v.degree);
  std::vector<uint32_t> offsets = {0}, sources;
  for (uint32_t node = 0; node < v.nodes; ++node) {
    const uint32_t degree = v.unequal ? random() % 4 * v.degree : v.degree;
    for (uint32_t i = 0; i < degree; ++i)
      sources.push_back(v.span > 0 ? (node + random() % v.span) % v.neighbors
                                   : random() % v.neighbors);
    offsets.push_back(static_cast<uint32_t>(sources.size()));
  }
  if (sources.empty()) {  // even the smallest graph has an edge
    sources.push_back(0);
    offsets.back() = 1;
  }
  std::vector<float> vector(v.heads * v.size);
  for (float& value : vector) value = (static_cast<float>(random() % 2001) - 1000) / 1000;
  GraphWords graph{ControlWords(kGraphSpare, 0xffffffff), {}, {}};
  graph.edges.offsets = graph.words.append(offsets);
  graph.edges.sources = graph.words.append(sources);
  graph.vector = graph.words.append(vector);
  return graph;
}

std::string name_of_graph(const GraphVariant& v) {
  return fmt::format("n{}_m{}_d{}{}_h{}_s{}", v.nodes, v.neighbors, v.degree,
                     v.unequal ? "_unequal" : "", v.heads, v.size);
}

OpCase edge_softmax_case(const GraphVariant& v) {
  static const char* const kNames[] = {"dot", "additive", "leaky", "distance"};
  OpCase c;
  c.name = name_of_graph(v) + "." + kNames[static_cast<size_t>(v.score)];
  if (v.deviation != 1) c.name += "." + name_part(v.deviation);
  // Large numbers give weights of 0 and 1; a single neighbour gives only 1.
  c.degenerate = v.deviation > 1 || v.neighbors == 1;
  const bool takes_vector =
      v.score == AttentionScore::kLeaky || v.score == AttentionScore::kAdditive;
  const uint64_t columns = uint64_t{v.heads} * v.size;
  const GraphWords graph = graph_of(v);
  EdgeScore score{.heads = v.heads, .size = v.size, .score = v.score, .scale = 0.75f};
  if (takes_vector) score.vector = graph.vector;
  const AttentionOptions options{.score = v.score, .leaky_slope = score.leaky_slope};
  c.inputs = {normal_input({v.nodes, kGraphSpare + columns}, DataType::kF32, v.deviation),
              normal_input({v.neighbors, 2 * kGraphSpare + columns}, DataType::kF32, v.deviation),
              words_input(graph.words.words())};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    EdgeList edges = graph.edges;
    edges.tensor = inputs[2];
    return std::vector<Tensor>{edge_softmax(builder, {inputs[0], kGraphSpare},
                                            {inputs[1], 2 * kGraphSpare}, edges, score)};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const uint64_t edges = graph.edges.edges();
    CpuTensor y{{edges, v.heads},
                DataType::kF32,
                std::vector<double>(edges * v.heads),
                std::vector<double>(edges * v.heads)};
    std::vector<Bounded> weights(edges);
    for (uint64_t node = 0; node < v.nodes; ++node) {
      const uint64_t begin = graph.offset(node), end = graph.offset(node + 1);
      for (uint64_t head = 0; head < v.heads; ++head) {
        const double* q =
            &inputs[0].values[node * (kGraphSpare + columns) + kGraphSpare + head * v.size];
        double peak = -kInfinity;
        for (uint64_t edge = begin; edge < end; ++edge) {
          const double* k = &inputs[1].values[graph.source(edge) * (2 * kGraphSpare + columns) +
                                              2 * kGraphSpare + head * v.size];
          double sum = 0, error = 0, magnitude = 0;
          for (uint64_t d = 0; d < v.size; ++d) {
            const double weight =
                takes_vector ? graph.words.get(graph.vector, head * v.size + d) : 0;
            const Bounded term = score_term(options, q[d], k[d], weight);
            sum += term.value;
            error += term.error;
            magnitude += std::abs(term.value);
          }
          weights[edge] = Bounded(sum, error + sum_error(static_cast<double>(v.size), magnitude)) *
                          Bounded(score.scale);
          peak = std::max(peak, weights[edge].value);
        }
        double sum = 0, error = 0;
        for (uint64_t edge = begin; edge < end; ++edge) {
          // The maximum that a device subtracts is equal in numerator and denominator.
          weights[edge] = exp(weights[edge] - Bounded(peak));
          sum += weights[edge].value;
          error += weights[edge].error;
        }
        const Bounded total(sum, error + sum_error(static_cast<double>(end - begin), sum));
        for (uint64_t edge = begin; edge < end; ++edge)
          put(y, edge * v.heads + head, weights[edge] / total);
      }
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

OpCase edge_sum_case(const GraphVariant& v) {
  OpCase c;
  c.name = name_of_graph(v);
  if (v.averaged) c.name += ".averaged";
  if (v.exact) c.name += ".exact";
  c.exact = v.exact;
  const uint64_t columns = uint64_t{v.heads} * v.size;
  const GraphWords graph = graph_of(v);
  const uint64_t edges = graph.edges.edges();
  const auto input = [&](Shape shape) {
    return v.exact ? whole_input(shape, DataType::kF32, 7) : normal_input(shape, DataType::kF32);
  };
  c.inputs = {input({edges, v.heads}), input({v.neighbors, kGraphSpare + columns}),
              words_input(graph.words.words())};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    EdgeList list = graph.edges;
    list.tensor = inputs[2];
    return std::vector<Tensor>{
        edge_sum(builder, inputs[0], {inputs[1], kGraphSpare}, list, v.size, v.averaged)};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor y{{v.nodes, v.averaged ? v.size : columns}, DataType::kF32, {}, {}};
    const auto sum_of = [&](uint64_t node, uint64_t head, uint64_t column) {
      const uint64_t begin = graph.offset(node), end = graph.offset(node + 1);
      double sum = 0, magnitude = 0;
      for (uint64_t edge = begin; edge < end; ++edge) {
        const double product =
            inputs[0].values[edge * v.heads + head] *
            inputs[1].values[graph.source(edge) * (kGraphSpare + columns) + kGraphSpare + column];
        sum += product;
        magnitude += std::abs(product);
      }
      return Bounded(sum, v.exact ? 0 : sum_error(static_cast<double>(end - begin) + 1, magnitude));
    };
    for (uint64_t node = 0; node < v.nodes; ++node) {
      if (!v.averaged) {
        for (uint64_t at = 0; at < columns; ++at) append(y, sum_of(node, at / v.size, at));
        continue;
      }
      for (uint64_t d = 0; d < v.size; ++d) {
        double sum = 0, error = 0, magnitude = 0;
        for (uint64_t head = 0; head < v.heads; ++head) {
          const Bounded of_head = sum_of(node, head, head * v.size + d);
          sum += of_head.value;
          error += of_head.error;
          magnitude += std::abs(of_head.value);
        }
        if (!v.exact) error += sum_error(static_cast<double>(v.heads), magnitude);
        const Bounded mean = v.exact ? Bounded(sum / v.heads)
                                     : Bounded(sum, error) / Bounded(static_cast<double>(v.heads));
        append(y, mean);
      }
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

/// All graphs for both ops.
std::vector<GraphVariant> graph_variants() {
  return {{},
          {.nodes = 1, .neighbors = 1, .degree = 5},
          {.nodes = 7, .neighbors = 7, .degree = 3, .heads = 3, .size = 5},
          {.nodes = 34, .neighbors = 34, .degree = 4, .heads = 8, .size = 8, .unequal = true},
          {.nodes = 65, .neighbors = 13, .degree = 2, .heads = 1, .size = 7, .unequal = true},
          {.nodes = 3, .neighbors = 101, .degree = 131, .heads = 2, .size = 4},
          {.nodes = 500, .neighbors = 257, .degree = 16, .heads = 4, .size = 8, .unequal = true},
          {.nodes = 31, .neighbors = 1, .degree = 2, .heads = 5, .size = 64}};
}

GraphVariant graph_of_shape(const char* op, std::span<const uint64_t> shape) {
  if (shape.size() < 4 || shape.size() > 5 || std::ranges::count(shape, uint64_t{0}) > 0 ||
      std::ranges::any_of(shape, [](uint64_t extent) { return extent > 1u << 24; })) {
    throw ShapeError(op, "a shape is four or five positive numbers",
                     "give nodes,neighbors of each,heads,columns of a head such as 65536,16,8,8, "
                     "and behind them among how many nodes that follow a node its neighbors are");
  }
  return {.nodes = static_cast<uint32_t>(shape[0]),
          .neighbors = static_cast<uint32_t>(shape[0]),
          .degree = static_cast<uint32_t>(shape[1]),
          .heads = static_cast<uint32_t>(shape[2]),
          .size = static_cast<uint32_t>(shape[3]),
          .span = shape.size() > 4 ? static_cast<uint32_t>(shape[4]) : 0};
}

/// Graphs with 16 neighbours per node: the cost of an edge must not depend on the number of nodes,
/// except through caches, which the graphs with nearby neighbours show.
std::vector<std::vector<uint64_t>> growing_graphs() {
  return {{1024, 16, 8, 8},  {4096, 16, 8, 8},     {16384, 16, 8, 8},
          {65536, 16, 8, 8}, {1024, 16, 8, 8, 64}, {65536, 16, 8, 8, 64}};
}

class EdgeSoftmaxCases : public OpCases {
 public:
  std::string shape_format() const override { return "nodes,neighbors,heads,size[,span]"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override { return growing_graphs(); }
  OpCase make(std::span<const uint64_t> shape, KernelTypes) const override {
    return edge_softmax_case(graph_of_shape("edge_softmax", shape));
  }
  std::vector<OpCase> samples(KernelTypes) const override {
    std::vector<OpCase> cases;
    for (GraphVariant v : graph_variants()) {
      for (const AttentionScore score : {AttentionScore::kLeaky, AttentionScore::kAdditive,
                                         AttentionScore::kDot, AttentionScore::kDistance}) {
        v.score = score;
        cases.push_back(edge_softmax_case(v));
      }
    }
    for (const double deviation : {1e-3, 50.0}) {
      cases.push_back(edge_softmax_case({.nodes = 19,
                                         .neighbors = 23,
                                         .degree = 6,
                                         .heads = 2,
                                         .size = 3,
                                         .unequal = true,
                                         .deviation = deviation}));
    }
    return cases;
  }
};

class EdgeSumCases : public OpCases {
 public:
  std::string shape_format() const override { return "nodes,neighbors,heads,size[,span]"; }
  bool exact(KernelTypes) const override { return true; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override { return growing_graphs(); }
  OpCase make(std::span<const uint64_t> shape, KernelTypes) const override {
    return edge_sum_case(graph_of_shape("edge_sum", shape));
  }
  std::vector<OpCase> samples(KernelTypes) const override {
    std::vector<OpCase> cases;
    for (GraphVariant v : graph_variants()) {
      for (const bool averaged : {false, true}) {
        v.averaged = averaged;
        v.exact = false;
        cases.push_back(edge_sum_case(v));
        // The mean over 1, 4 or 8 heads of whole numbers is exact. Some graphs suffice for these
        // cases, which run on every device.
        v.exact = v.unequal && v.nodes < 500 && (averaged ? v.heads == 8 : true);
        if (v.exact) cases.push_back(edge_sum_case(v));
      }
    }
    return cases;
  }
};

}  // namespace

const OpCases& edge_softmax_cases() {
  static const EdgeSoftmaxCases cases;
  return cases;
}

const OpCases& edge_sum_cases() {
  static const EdgeSumCases cases;
  return cases;
}

}  // namespace mulciber::conformance
