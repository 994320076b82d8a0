// The public graph attention: uploads arrays and runs a program of layers/graph_attention.h.
#include "mulciber/graph_attention.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "layers/graph_attention.h"
#include "models/attention/attention_plan.h"
#include "models/core/trim_memory.h"
#include "runtime/device.h"

namespace mulciber {
namespace {

[[noreturn]] void refuse_graph(std::string problem, std::string remedy) {
  throw ShapeError("graph attention", std::move(problem), std::move(remedy));
}

void check_graph(const Graph& graph) {
  const std::vector<uint32_t>& offsets = graph.offsets;
  if (offsets.size() < 2 || offsets.front() != 0 || !std::ranges::is_sorted(offsets) ||
      offsets.back() != graph.sources.size() || graph.sources.empty())
    refuse_graph(
        fmt::format("{} offsets and {} sources are no graph", offsets.size(), graph.sources.size()),
        "give a node and an edge or more, and offsets ascending from 0 to the number of edges");
}

uint32_t columns_of_head(const char* what, const Projection& projection, uint32_t heads) {
  check_array(what, projection.weight, 2);
  const uint64_t out = projection.weight.shape[0];
  if (heads == 0 || out == 0 || out % heads != 0)
    refuse_graph(fmt::format("{} has {} columns for {} heads", what, out, heads),
                 "give every head as many");
  return static_cast<uint32_t>(out / heads);
}

}  // namespace

Graph make_graph(uint32_t nodes, const std::vector<GraphEdge>& edges, const GraphOptions& options) {
  std::vector<std::vector<uint32_t>> sources(nodes);
  std::vector<bool> looped(nodes);
  const auto connect = [&](uint32_t source, uint32_t target) {
    sources[target].push_back(source);
    if (source == target) looped[source] = true;
  };
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto [source, target] = edges[i];
    if (source >= nodes || target >= nodes)
      refuse_graph(fmt::format("edge {} goes from node {} to node {}, and there are {}", i, source,
                               target, nodes),
                   "number nodes from 0");
    connect(source, target);
    if (options.both_ways && source != target) connect(target, source);
  }
  Graph graph{{0}, {}};
  for (uint32_t node = 0; node < nodes; ++node) {
    if (options.self_loops && !looped[node]) sources[node].push_back(node);
    std::ranges::sort(sources[node]);
    graph.sources.insert(graph.sources.end(), sources[node].begin(), sources[node].end());
    graph.offsets.push_back(static_cast<uint32_t>(graph.sources.size()));
  }
  return graph;
}

GraphAttentionDescription gat_description(const FloatArray& weight, uint32_t heads,
                                          const std::vector<float>& target,
                                          const std::vector<float>& source) {
  const uint32_t size = columns_of_head("weight", {weight}, heads);
  const uint64_t columns = weight.shape[1];
  // Each head gets a row of the projection, because a . (W x) = (a W) x.
  const auto rows = [&](const std::vector<float>& vector) {
    if (vector.size() != uint64_t{heads} * size)
      refuse_graph(fmt::format("{} numbers for {} heads of {} columns", vector.size(), heads, size),
                   "give (heads, size)");
    FloatArray result{{heads, columns}, {}};
    for (uint32_t head = 0; head < heads; ++head) {
      for (uint64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (uint64_t row = head * uint64_t{size}; row < (head + 1) * uint64_t{size}; ++row)
          sum += double{vector[row]} * weight.values[row * columns + column];
        result.values.push_back(static_cast<float>(sum));
      }
    }
    return Projection{std::move(result)};
  };
  return {.heads = heads,
          .query = rows(target),
          .key = rows(source),
          .value = Projection{weight},
          .score_vector = std::vector<float>(heads, 1.0f)};
}

struct GraphAttentionLayer::Impl {
  Impl(std::shared_ptr<Device> given, GraphAttentionDescription description, Graph graph);

  GraphAttentionResult run(const FloatArray& nodes, const FloatArray& neighbors);
  uint64_t trim() {
    return trim_memory(*device_, [&] { forget_program(); });
  }

 private:
  void forget_program() {
    program_.reset();
    signature_.clear();
    buffers_.clear();
  }
  Tensor on_device(std::vector<Buffer>& buffers, const Shape& shape, DataType type,
                   std::span<const std::byte> bytes);
  Linear linear(const Projection& projection);
  void build(const FloatArray& nodes, const FloatArray& neighbors, bool same);
  void write(const Tensor& tensor, const FloatArray& array);
  FloatArray read(const Tensor& tensor) const;

  std::shared_ptr<Device> device_;
  GraphAttention layer_;
  EdgeList graph_;
  uint32_t neighbors_ = 0;  // least number of neighbours, by the graph's sources
  uint64_t columns_ = 0, neighbor_columns_ = 0;
  std::vector<Buffer> weights_;

  // The program of the last call, which calls with equal shapes run again.
  std::vector<uint64_t> signature_;
  std::vector<Buffer> buffers_;
  Tensor nodes_in_, neighbors_in_, result_, edges_;
  std::optional<Program> program_;
};

GraphAttentionLayer::Impl::Impl(std::shared_ptr<Device> given, GraphAttentionDescription d,
                                Graph graph)
    : device_(std::move(given)) {
  check_graph(graph);
  const uint32_t size = columns_of_head("query", d.query, d.heads);
  if (columns_of_head("key", d.key, d.heads) != size)
    refuse_graph(fmt::format("query and key have {} and {} columns", d.query.weight.shape[0],
                             d.key.weight.shape[0]),
                 "give both as many");
  const Projection& value = d.value ? *d.value : d.key;
  layer_.value_size = columns_of_head("value", value, d.heads);
  columns_ = d.query.weight.shape[1];
  neighbor_columns_ = d.key.weight.shape[1];
  if (value.weight.shape[1] != neighbor_columns_)
    refuse_graph(fmt::format("key reads {} columns of a neighbour, value {}", neighbor_columns_,
                             value.weight.shape[1]),
                 "give both as many");
  layer_.query = linear(d.query);
  layer_.key = linear(d.key);
  if (d.value) layer_.value = linear(*d.value);
  layer_.averaged = d.averaged;

  ControlWords words;
  graph_.offsets = words.append(graph.offsets);
  graph_.sources = words.append(graph.sources);
  const float usual =
      d.score == AttentionScore::kDot ? 1 / std::sqrt(static_cast<float>(size)) : 1.0f;
  layer_.score = {.heads = d.heads,
                  .size = size,
                  .score = d.score,
                  .scale = d.scale.value_or(usual),
                  .leaky_slope = d.leaky_slope};
  if (!d.score_vector.empty()) {
    check_array("score_vector", {{d.heads, size}, d.score_vector}, 2);
    layer_.score.vector = words.append(d.score_vector);
  }
  graph_.tensor = on_device(weights_, {words.size()}, DataType::kU32, words.bytes());
  neighbors_ = *std::ranges::max_element(graph.sources) + 1;
}

Tensor GraphAttentionLayer::Impl::on_device(std::vector<Buffer>& buffers, const Shape& shape,
                                            DataType type, std::span<const std::byte> bytes) {
  buffers.push_back(device_->memory().allocate(shape.elements() * 4, MemoryUsage::kActivations));
  const Tensor tensor = buffers.back().tensor(shape, type);
  BufferView view = tensor.view;
  view.size = bytes.size();
  if (!bytes.empty()) upload(*device_, view, bytes);
  return tensor;
}

Linear GraphAttentionLayer::Impl::linear(const Projection& projection) {
  const FloatArray& weight = projection.weight;
  const std::vector<float>& bias = projection.bias;
  Linear result{on_device(weights_, Shape(std::span(weight.shape)), DataType::kF32,
                          std::as_bytes(std::span(weight.values)))};
  if (bias.empty()) return result;
  check_array("a bias", {{weight.shape[0]}, bias}, 1);
  result.bias = on_device(weights_, {bias.size()}, DataType::kF32, std::as_bytes(std::span(bias)));
  return result;
}

void GraphAttentionLayer::Impl::build(const FloatArray& nodes, const FloatArray& neighbors,
                                      bool same) {
  forget_program();
  const auto input = [&](const FloatArray& array) {
    return on_device(buffers_, Shape(std::span(array.shape)), DataType::kF32, {});
  };
  nodes_in_ = input(nodes);
  neighbors_in_ = same ? nodes_in_ : input(neighbors);
  ProgramBuilder builder(*device_, "graph attention");
  result_ = layer_(builder, nodes_in_, neighbors_in_, graph_, &edges_);
  builder.keep(result_);
  builder.keep(edges_);
  program_ = builder.build();
}

void GraphAttentionLayer::Impl::write(const Tensor& tensor, const FloatArray& array) {
  BufferView view = tensor.view;
  view.size = tensor.bytes();
  upload(*device_, view, std::as_bytes(std::span(array.values)));
}

FloatArray GraphAttentionLayer::Impl::read(const Tensor& tensor) const {
  return {{tensor.shape[0], tensor.shape[1]}, download_as<float>(*device_, program_->view(tensor))};
}

GraphAttentionResult GraphAttentionLayer::Impl::run(const FloatArray& nodes,
                                                    const FloatArray& neighbors) {
  check_array("nodes", nodes, 2);
  check_array("neighbors", neighbors, 2);
  if (nodes.shape[0] != graph_.nodes() || nodes.shape[1] != columns_)
    refuse_graph(fmt::format("nodes are ({}, {})", nodes.shape[0], nodes.shape[1]),
                 fmt::format("give ({}, {})", graph_.nodes(), columns_));
  if (neighbors.shape[0] < neighbors_ || neighbors.shape[1] != neighbor_columns_)
    refuse_graph(fmt::format("neighbours are ({}, {})", neighbors.shape[0], neighbors.shape[1]),
                 fmt::format("give {} or more of {} columns", neighbors_, neighbor_columns_));
  const bool same = &nodes == &neighbors;
  std::vector<uint64_t> signature = {neighbors.shape[0], same};
  if (signature != signature_) {
    build(nodes, neighbors, same);
    signature_ = std::move(signature);
  }
  write(nodes_in_, nodes);
  if (!same) write(neighbors_in_, neighbors);
  program_->run();
  return {read(result_), read(edges_)};
}

GraphAttentionLayer::GraphAttentionLayer(std::shared_ptr<Device> device,
                                         GraphAttentionDescription description, Graph graph)
    : impl_(std::make_unique<Impl>(std::move(device), std::move(description), std::move(graph))) {}
GraphAttentionLayer::~GraphAttentionLayer() = default;
GraphAttentionLayer::GraphAttentionLayer(GraphAttentionLayer&&) noexcept = default;
GraphAttentionLayer& GraphAttentionLayer::operator=(GraphAttentionLayer&&) noexcept = default;

GraphAttentionResult GraphAttentionLayer::operator()(const FloatArray& x) {
  return impl_->run(x, x);
}
GraphAttentionResult GraphAttentionLayer::operator()(const FloatArray& nodes,
                                                     const FloatArray& neighbors) {
  return impl_->run(nodes, neighbors);
}
uint64_t GraphAttentionLayer::trim() { return impl_->trim(); }

}  // namespace mulciber
