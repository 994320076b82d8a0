// Attention without a model in C: results are those of C++, and of formulas in double precision.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "capi/handles.h"
#include "mulciber/attention.h"
#include "mulciber/c/graph_attention.h"
#include "mulciber/graph_attention.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

MulciberFloatArray array_in_c(const FloatArray& array) {
  return {sizeof(MulciberFloatArray), static_cast<uint32_t>(array.shape.size()), array.shape.data(),
          array.values.data()};
}

FloatArray drawn_array(std::vector<uint64_t> shape, uint32_t seed) {
  size_t elements = 1;
  for (const uint64_t extent : shape) elements *= extent;
  FloatArray array = {std::move(shape), std::vector<float>(elements)};
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.8f);
  for (float& value : array.values) value = normal(random);
  return array;
}

/// A projection with a bias, in both languages.
struct DrawnProjection {
  Projection in_cpp;
  MulciberFloatArray weight = {};
  MulciberProjection in_c = {};

  DrawnProjection(std::vector<uint64_t> shape, uint32_t bias, uint32_t seed)
      : in_cpp{drawn_array(std::move(shape), seed), drawn_array({bias}, seed + 1).values} {
    weight = array_in_c(in_cpp.weight);
    in_c = {sizeof(in_c), bias, in_cpp.bias.data(), &weight};
  }
  DrawnProjection(const DrawnProjection&) = delete;
};

/// A device in C, and in C++.
struct Operators {
  VulkanApplication application;
  Context context;
  MulciberContext* c = context.handle;
  MulciberDevice* device = nullptr;
  std::shared_ptr<Device> same;

  Operators() {
    const Lent lent(application);
    REQUIRE(mulciber_adopt_device(c, &lent.info, &device) == MULCIBER_OK);
    same = device->device;
  }
  ~Operators() { mulciber_destroy_device(device); }

  void check_array(const MulciberFloatArray* found, const FloatArray& expected) const {
    REQUIRE(found != nullptr);
    CHECK(found->size == sizeof(*found));
    CHECK(std::vector<uint64_t>(found->shape, found->shape + found->rank) == expected.shape);
    CHECK(std::equal(expected.values.begin(), expected.values.end(), found->values));
  }
  /// Computes with both, and compares results.
  void check(const MulciberAttentionDescription& description, const AttentionDescription& twin,
             const MulciberAttentionInputs& inputs, AttentionInputs twin_inputs) const {
    MulciberAttention* attention = nullptr;
    const MulciberStatus made = mulciber_create_attention(c, device, &description, &attention);
    INFO(context.message());
    REQUIRE(made == MULCIBER_OK);
    Attention same_attention(same, twin);
    twin_inputs.weights = true;
    const AttentionResult expected = same_attention(twin_inputs);
    MulciberResult* result = nullptr;
    const MulciberFloatArray *output = nullptr, *weights = nullptr;
    const MulciberStatus status =
        mulciber_compute_attention(c, attention, &inputs, &result, &output, &weights);
    INFO(context.message());
    REQUIRE(status == MULCIBER_OK);
    check_array(output, expected.output);
    check_array(weights, expected.weights);
    mulciber_destroy_result(result);
    mulciber_destroy_attention(attention);
  }
  std::string refused(MulciberStatus status) const {
    CHECK(status == MULCIBER_ERROR_SETTING);
    return context.message();
  }
};

}  // namespace

TEST_CASE("Causal attention in C is its formula") {
  const Operators operators;
  MulciberContext* c = operators.c;
  constexpr size_t kTokens = 4, kColumns = 3;
  const FloatArray x = drawn_array({1, kTokens, kColumns}, 3);
  const MulciberFloatArray in_c = array_in_c(x);
  MulciberAttentionDescription description = {sizeof(description)};
  description.causal = VK_TRUE;
  MulciberAttention* attention = nullptr;
  REQUIRE(mulciber_create_attention(c, operators.device, &description, &attention) == MULCIBER_OK);
  const MulciberAttentionInputs inputs = {sizeof(inputs), 0, &in_c, &in_c, &in_c};
  MulciberResult* result = nullptr;
  const MulciberFloatArray *output = nullptr, *weights = nullptr;
  REQUIRE(mulciber_compute_attention(c, attention, &inputs, &result, &output, &weights) ==
          MULCIBER_OK);
  for (size_t query = 0; query < kTokens; ++query) {
    std::vector<double> shares;
    double sum = 0;
    for (size_t key = 0; key <= query; ++key) {
      double dot = 0;
      for (size_t i = 0; i < kColumns; ++i)
        dot += double{x.values[query * kColumns + i]} * x.values[key * kColumns + i];
      shares.push_back(std::exp(dot / std::sqrt(3.0)));
      sum += shares.back();
    }
    for (size_t key = 0; key < kTokens; ++key) {
      const double share = key <= query ? shares[key] / sum : 0;
      CHECK(std::abs(weights->values[query * kTokens + key] - share) < 1e-5);
    }
    for (size_t i = 0; i < kColumns; ++i) {
      double value = 0;
      for (size_t key = 0; key <= query; ++key)
        value += shares[key] / sum * x.values[key * kColumns + i];
      CHECK(std::abs(output->values[query * kColumns + i] - value) < 1e-5);
    }
  }
  const std::vector<float> whole(output->values, output->values + kTokens * kColumns);
  mulciber_destroy_result(result);
  // Without weights the device has another program.
  REQUIRE(mulciber_compute_attention(c, attention, &inputs, &result, &output, nullptr) ==
          MULCIBER_OK);
  for (size_t i = 0; i < whole.size(); ++i) CHECK(std::abs(output->values[i] - whole[i]) < 1e-5);
  mulciber_destroy_result(result);
  uint64_t freed = 0;
  CHECK(mulciber_trim_attention(c, attention, &freed) == MULCIBER_OK);
  CHECK(freed > 0);
  mulciber_destroy_attention(attention);
}

TEST_CASE("Projections, masks, counts and options of attention in C are those of C++") {
  const Operators operators;
  const FloatArray q = drawn_array({2, 3, 8}, 1), k = drawn_array({2, 5, 8}, 2),
                   v = drawn_array({2, 5, 8}, 3), mask = drawn_array({2, 4, 3, 5}, 4);
  const MulciberFloatArray in_q = array_in_c(q), in_k = array_in_c(k), in_v = array_in_c(v),
                           in_mask = array_in_c(mask);
  const DrawnProjection query({16, 8}, 16, 10), key({8, 8}, 8, 20), value({2, 4, 4}, 8, 30),
      output({6, 16}, 6, 40);
  const std::vector<float> head_mask = {1, 0.5f, 0, 2};
  MulciberAttentionDescription description = {sizeof(description)};
  description.heads = 4;
  description.kv_heads = 2;
  description.query = &query.in_c;
  description.key = &key.in_c;
  description.value = &value.in_c;
  description.output = &output.in_c;
  description.scale = 0.3f;
  description.soft_cap = 4;
  description.head_mask = head_mask.data();
  description.head_mask_count = 4;
  AttentionDescription twin = {.heads = 4,
                               .kv_heads = 2,
                               .query = query.in_cpp,
                               .key = key.in_cpp,
                               .value = value.in_cpp,
                               .output = output.in_cpp,
                               .scale = 0.3f,
                               .soft_cap = 4,
                               .head_mask = head_mask};
  const uint32_t counts[] = {5, 2};
  MulciberAttentionInputs inputs = {sizeof(inputs), 2, &in_q, &in_k, &in_v};
  inputs.key_counts = counts;
  inputs.mask = &in_mask;
  AttentionInputs twin_inputs = {
      .queries = q, .keys = k, .values = v, .key_counts = {5, 2}, .mask = mask};
  operators.check(description, twin, inputs, twin_inputs);
  description.causal = VK_TRUE;
  description.window = 2;
  description.hard = VK_TRUE;
  twin.causal = twin.hard = true;
  twin.window = 2;
  inputs.has_query_offset = VK_TRUE;
  inputs.query_offset = 1;
  twin_inputs.query_offset = 1;
  operators.check(description, twin, inputs, twin_inputs);
}

TEST_CASE("Scores, biases and patterns of attention in C are those of C++") {
  const Operators operators;
  const FloatArray x = drawn_array({1, 32, 8}, 5), table = drawn_array({8, 2}, 6),
                   vector = drawn_array({8}, 7);
  const MulciberFloatArray in_x = array_in_c(x), in_table = array_in_c(table);
  const MulciberAttentionInputs inputs = {sizeof(inputs), 0, &in_x, &in_x, &in_x};
  const AttentionInputs twin_inputs = {.queries = x, .keys = x, .values = x};
  const auto check = [&](const auto& change) {
    MulciberAttentionDescription description = {sizeof(description)};
    description.heads = 2;
    AttentionDescription twin = {.heads = 2};
    change(description, twin);
    operators.check(description, twin, inputs, twin_inputs);
  };
  const float slopes[] = {0.5f, 0.25f};
  const MulciberAlibiBias alibi = {sizeof(alibi), 2, slopes};
  const MulciberT5Bias t5 = {sizeof(t5), 20, &in_table, VK_TRUE};
  check([&](MulciberAttentionDescription& in_c, AttentionDescription& twin) {
    in_c.score = MULCIBER_SCORE_LEAKY;
    in_c.leaky_slope = 0.1f;
    in_c.score_vector = vector.values.data();
    in_c.vector_count = 8;
    in_c.alibi = &alibi;
    twin.score = AttentionScore::kLeaky;
    twin.leaky_slope = 0.1f;
    twin.score_vector = vector.values;
    twin.bias = AlibiBias{{0.5f, 0.25f}};
  });
  check([&](MulciberAttentionDescription& in_c, AttentionDescription& twin) {
    in_c.score = MULCIBER_SCORE_DISTANCE;
    in_c.t5 = &t5;
    twin.score = AttentionScore::kDistance;
    twin.bias = T5Bias{table, 20, false};
  });
  const uint32_t globals[] = {0, 9};
  const MulciberLongformer longformer = {sizeof(longformer), 16, globals, 2};
  check([&](MulciberAttentionDescription& in_c, AttentionDescription& twin) {
    in_c.longformer = &longformer;
    in_c.window = 4;
    twin.pattern = Longformer{{0, 9}, 16};
    twin.window = 4;
  });
  MulciberResult* result = nullptr;
  const MulciberBlockLists* random = nullptr;
  REQUIRE(mulciber_random_blocks(operators.c, 4, 1, 7, &result, &random) == MULCIBER_OK);
  const uint32_t first = 0;
  const MulciberBigBird bigbird = {sizeof(bigbird), 8, 0, 1, &first, random};
  check([&](MulciberAttentionDescription& in_c, AttentionDescription& twin) {
    in_c.bigbird = &bigbird;
    twin.pattern = BigBird{8, 0, {0}, random_blocks(4, 1, 7)};
  });
  mulciber_destroy_result(result);
  const uint32_t offsets[] = {0, 1, 1, 4, 5}, blocks[] = {1, 0, 2, 3, 3};
  const MulciberBlockLists lists = {sizeof(lists), 4, offsets, blocks};
  const MulciberListedKeys listed = {sizeof(listed), 8, 8, &lists};
  check([&](MulciberAttentionDescription& in_c, AttentionDescription& twin) {
    in_c.listed = &listed;
    twin.pattern = ListedKeys{8, 8, {{1}, {}, {0, 2, 3}, {3}}};
  });
}

TEST_CASE("Local and memory-compressed attention in C are those of C++") {
  const Operators operators;
  const FloatArray x = drawn_array({1, 12, 8}, 5), keys = drawn_array({8, 8, 3}, 6),
                   values = drawn_array({4, 8, 3}, 7), bias = drawn_array({8}, 8);
  const MulciberFloatArray in_x = array_in_c(x), in_keys = array_in_c(keys),
                           in_values = array_in_c(values);
  const MulciberAttentionInputs inputs = {sizeof(inputs), 0, &in_x, &in_x, &in_x};
  const AttentionInputs twin_inputs = {.queries = x, .keys = x, .values = x};
  const DrawnProjection hidden({6, 8}, 6, 50), out({1, 6}, 1, 60);
  MulciberLocalAttention local = {sizeof(local), 4, &hidden.in_c, &out.in_c, 2};
  MulciberAttentionDescription description = {sizeof(description)};
  description.local = &local;
  AttentionDescription twin;
  twin.local = LocalAttention{2, 4, hidden.in_cpp, out.in_cpp};
  operators.check(description, twin, inputs, twin_inputs);

  const MulciberMemoryCompression compression = {
      sizeof(compression), 8, 0, &in_keys, &in_values, bias.values.data(), nullptr};
  description.local = nullptr;
  description.compression = &compression;
  description.causal = VK_TRUE;
  twin.local.reset();
  twin.compression = MemoryCompression{keys, values, bias.values, {}};
  twin.causal = true;
  operators.check(description, twin, inputs, twin_inputs);
}

TEST_CASE("Graphs and graph attention in C are those of C++") {
  const Operators operators;
  MulciberContext* c = operators.c;
  const uint32_t sources[] = {1, 1, 4, 0, 3}, targets[] = {0, 0, 0, 1, 3};
  const MulciberGraphInfo both = {sizeof(both), VK_TRUE, VK_TRUE};
  MulciberResult *of_graph = nullptr, *of_description = nullptr, *result = nullptr;
  const MulciberGraph* graph = nullptr;
  REQUIRE(mulciber_make_graph(c, 5, 5, sources, targets, &both, &of_graph, &graph) == MULCIBER_OK);
  const Graph twin_graph = make_graph(5, {{1, 0}, {1, 0}, {4, 0}, {0, 1}, {3, 3}},
                                      {.both_ways = true, .self_loops = true});
  CHECK(std::vector<uint32_t>(graph->offsets, graph->offsets + graph->node_count + 1) ==
        twin_graph.offsets);
  CHECK(std::vector<uint32_t>(graph->sources, graph->sources + graph->edge_count) ==
        twin_graph.sources);

  const FloatArray weight = drawn_array({8, 3}, 1), x = drawn_array({5, 3}, 2),
                   target = drawn_array({8}, 3), source = drawn_array({8}, 4),
                   others = drawn_array({7, 3}, 5);
  const MulciberFloatArray in_weight = array_in_c(weight), in_x = array_in_c(x),
                           in_others = array_in_c(others);
  const MulciberGraphAttentionDescription* gat = nullptr;
  REQUIRE(mulciber_describe_gat(c, &in_weight, 2, target.values.data(), source.values.data(),
                                &of_description, &gat) == MULCIBER_OK);
  const DrawnProjection query({8, 3}, 8, 70), key({8, 3}, 8, 80);
  MulciberGraphAttentionDescription second = {sizeof(second)};
  second.heads = 2;
  second.query = &query.in_c;
  second.key = &key.in_c;
  second.score = MULCIBER_SCORE_LEAKY;
  second.score_vector = target.values.data();
  second.vector_count = 8;
  second.averaged = VK_TRUE;
  const GraphAttentionDescription twins[] = {
      gat_description(weight, 2, target.values, source.values),
      {.heads = 2,
       .query = query.in_cpp,
       .key = key.in_cpp,
       .score_vector = target.values,
       .averaged = true}};
  for (const int i : {0, 1}) {
    MulciberGraphAttention* layer = nullptr;
    REQUIRE(mulciber_create_graph_attention(c, operators.device, i == 0 ? gat : &second, graph,
                                            &layer) == MULCIBER_OK);
    GraphAttentionLayer twin(operators.same, twins[i], twin_graph);
    for (const bool separate : {false, true}) {
      const MulciberFloatArray *output = nullptr, *weights = nullptr;
      REQUIRE(mulciber_compute_graph_attention(c, layer, &in_x, separate ? &in_others : nullptr,
                                               &result, &output, &weights) == MULCIBER_OK);
      const GraphAttentionResult expected = separate ? twin(x, others) : twin(x);
      operators.check_array(output, expected.output);
      operators.check_array(weights, expected.weights);
      mulciber_destroy_result(result);
    }
    CHECK(mulciber_trim_graph_attention(c, layer, nullptr) == MULCIBER_OK);
    mulciber_destroy_graph_attention(layer);
  }
  mulciber_destroy_result(of_description);
  mulciber_destroy_result(of_graph);
}

TEST_CASE("Attention in C that does not fit is refused with the reason") {
  const Operators operators;
  MulciberContext* c = operators.c;
  const FloatArray x = drawn_array({1, 3, 4}, 1);
  const MulciberFloatArray in_x = array_in_c(x);
  MulciberAttentionDescription description = {sizeof(description)};
  MulciberAttention* attention = nullptr;
  const auto created = [&] {
    return operators.refused(
        mulciber_create_attention(c, operators.device, &description, &attention));
  };
  CHECK_THAT(operators.refused(mulciber_create_attention(c, nullptr, &description, &attention)),
             ContainsSubstring("device: is NULL"));
  CHECK_THAT(operators.refused(mulciber_create_attention(c, operators.device, nullptr, &attention)),
             ContainsSubstring("MulciberAttentionDescription: is NULL"));
  description.score = static_cast<MulciberAttentionScore>(4);
  CHECK_THAT(created(), ContainsSubstring("give one of MulciberAttentionScore"));
  description.score = MULCIBER_SCORE_DOT;
  description.heads = 3;
  description.kv_heads = 2;
  CHECK_THAT(created(), ContainsSubstring("3 heads of queries, 2 of keys"));
  description.kv_heads = 0;
  const MulciberAlibiBias alibi = {sizeof(alibi), 2, nullptr};
  description.alibi = &alibi;
  CHECK_THAT(created(), ContainsSubstring("slopes: is NULL"));
  const MulciberT5Bias t5 = {sizeof(t5)};
  description.t5 = &t5;
  CHECK_THAT(created(), ContainsSubstring("bias: is given twice"));
  description.alibi = nullptr;
  CHECK_THAT(created(), ContainsSubstring("table: is NULL"));
  description.t5 = nullptr;
  const MulciberLongformer longformer = {sizeof(longformer)};
  const uint32_t offsets[] = {0, 2, 1};
  const MulciberBlockLists lists = {sizeof(lists), 2, offsets, offsets};
  MulciberListedKeys listed = {sizeof(listed), 0, 0, &lists};
  description.listed = &listed;
  CHECK_THAT(created(), ContainsSubstring("offsets that do not ascend"));
  description.longformer = &longformer;
  CHECK_THAT(created(), ContainsSubstring("pattern: is given twice"));
  description.longformer = nullptr;
  description.listed = nullptr;
  MulciberFloatArray bad = in_x;
  const MulciberProjection projection = {sizeof(projection), 0, nullptr, &bad};
  description.query = &projection;
  bad.rank = 9;
  CHECK_THAT(created(), ContainsSubstring("query: has 9 dimensions"));
  const uint64_t huge[] = {1ull << 40, 1ull << 40};
  bad.rank = 2;
  bad.shape = huge;
  CHECK_THAT(created(), ContainsSubstring("more elements than there is memory"));
  bad.shape = nullptr;
  CHECK_THAT(created(), ContainsSubstring("shape: is NULL"));
  CHECK(attention == nullptr);

  description = {sizeof(description)};
  REQUIRE(mulciber_create_attention(c, operators.device, &description, &attention) == MULCIBER_OK);
  MulciberAttentionInputs inputs = {sizeof(inputs), 0, &in_x, &in_x, nullptr};
  MulciberResult* result = nullptr;
  const MulciberFloatArray *output = nullptr, *weights = nullptr;
  const auto computed = [&] {
    const std::string message = operators.refused(
        mulciber_compute_attention(c, attention, &inputs, &result, &output, &weights));
    CHECK((result == nullptr && output == nullptr && weights == nullptr));
    return message;
  };
  CHECK_THAT(computed(), ContainsSubstring("values: is NULL"));
  inputs.values = &in_x;
  inputs.key_count_count = 1;
  CHECK_THAT(computed(), ContainsSubstring("key_counts: is NULL"));
  inputs.key_count_count = 0;
  const FloatArray flat = drawn_array({4, 3}, 2);
  const MulciberFloatArray in_flat = array_in_c(flat);
  inputs.mask = &in_flat;
  CHECK_THAT(computed(), ContainsSubstring("mask"));
  inputs.mask = nullptr;
  inputs.queries = &in_flat;
  CHECK_THAT(computed(), ContainsSubstring("queries has 12 values, and the shape (4, 3)"));
  CHECK_THAT(
      operators.refused(mulciber_compute_attention(c, nullptr, &inputs, &result, &output, nullptr)),
      ContainsSubstring("attention: is NULL"));
  mulciber_destroy_attention(attention);
  mulciber_destroy_attention(nullptr);
  const MulciberBlockLists* random = nullptr;
  CHECK_THAT(operators.refused(mulciber_random_blocks(c, 0xffffffffu, 1, 0, &result, &random)),
             ContainsSubstring("blocks: are 4294967295"));
}

TEST_CASE("Graphs in C that are none are refused with the reason") {
  const Operators operators;
  MulciberContext* c = operators.c;
  const uint32_t nodes[] = {0, 3};
  MulciberResult* result = nullptr;
  const MulciberGraph* graph = nullptr;
  const MulciberGraphAttentionDescription* gat = nullptr;
  CHECK_THAT(
      operators.refused(mulciber_make_graph(c, 3, 2, nodes, nodes, nullptr, &result, &graph)),
      ContainsSubstring("edge 1 goes from node 3"));
  CHECK_THAT(
      operators.refused(mulciber_make_graph(c, 3, 2, nodes, nullptr, nullptr, &result, &graph)),
      ContainsSubstring("targets: is NULL"));
  const FloatArray weight = drawn_array({4, 2}, 1);
  const MulciberFloatArray in_weight = array_in_c(weight);
  CHECK_THAT(
      operators.refused(mulciber_describe_gat(c, &in_weight, 2, nullptr, nullptr, &result, &gat)),
      ContainsSubstring("target: is NULL"));
  CHECK_THAT(operators.refused(mulciber_describe_gat(c, &in_weight, 3, weight.values.data(),
                                                     weight.values.data(), &result, &gat)),
             ContainsSubstring("4 columns for 3 heads"));
  CHECK((result == nullptr && graph == nullptr && gat == nullptr));
  const DrawnProjection projection({4, 2}, 4, 9);
  MulciberGraphAttentionDescription description = {sizeof(description)};
  description.query = description.key = &projection.in_c;
  MulciberGraphAttention* layer = nullptr;
  const MulciberGraph malformed = {sizeof(malformed), 1, 2, nodes, nodes};
  CHECK_THAT(operators.refused(mulciber_create_graph_attention(c, operators.device, &description,
                                                               &malformed, &layer)),
             ContainsSubstring("are no graph"));
  description.key = nullptr;
  CHECK_THAT(operators.refused(mulciber_create_graph_attention(c, operators.device, &description,
                                                               &malformed, &layer)),
             ContainsSubstring("key: is NULL"));
  const MulciberFloatArray* output = nullptr;
  CHECK_THAT(operators.refused(mulciber_compute_graph_attention(c, nullptr, &in_weight, nullptr,
                                                                &result, &output, nullptr)),
             ContainsSubstring("layer: is NULL"));
  CHECK_THAT(operators.refused(mulciber_trim_graph_attention(c, nullptr, nullptr)),
             ContainsSubstring("layer: is NULL"));
  CHECK(layer == nullptr);
  mulciber_destroy_graph_attention(nullptr);
}
