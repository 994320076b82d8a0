// The public attention (mulciber/attention.h): every kind against recorded values of an independent
// implementation, and the errors for arrays that do not fit.
#include "mulciber/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "checkpoints/json.h"
#include "checkpoints/safetensors.h"
#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/conformance_rows.h"
#include "tests/device.h"
#include "tests/support.h"

using namespace mulciber;

namespace {

std::shared_ptr<Device> device() {
  return {std::shared_ptr<Device>(), &tests::shared_device()};  // the device outlives the test
}

FloatArray read(const SafetensorsFile& file, const std::string& name) {
  const CheckpointTensor* tensor = file.find(name);
  REQUIRE(tensor);
  FloatArray array{{tensor->shape.begin(), tensor->shape.end()}, {}};
  const bool wide = tensor->type == CheckpointType::kF64;
  for (uint64_t i = 0; i < tensor->elements(); ++i) {
    double value = 0;
    float narrow = 0;
    if (wide)
      std::memcpy(&value, tensor->bytes.data() + 8 * i, 8);
    else
      std::memcpy(&narrow, tensor->bytes.data() + 4 * i, 4);
    array.values.push_back(wide ? static_cast<float>(value) : narrow);
  }
  return array;
}

/// (batch, heads, length, size) as (batch, length, heads * size).
FloatArray side_by_side(const FloatArray& from) {
  const uint64_t heads = from.shape[1], length = from.shape[2], size = from.shape[3];
  FloatArray to{{from.shape[0], length, heads * size}, std::vector<float>(from.values.size())};
  for (uint64_t i = 0; i < from.values.size(); ++i) {
    const uint64_t d = i % size, at = i / size % length, head = i / size / length % heads,
                   row = i / size / length / heads;
    to.values[((row * length + at) * heads + head) * size + d] = from.values[i];
  }
  return to;
}

/// (heads, in, out) as (heads, out, in).
FloatArray transposed(const FloatArray& from) {
  const uint64_t in = from.shape[1], out = from.shape[2];
  FloatArray to{{from.shape[0], out, in}, std::vector<float>(from.values.size())};
  for (uint64_t i = 0; i < from.values.size(); ++i)
    to.values[i / (in * out) * in * out + i % out * in + i / out % in] = from.values[i];
  return to;
}

/// Columns [first, first + count) of the innermost extent.
FloatArray columns(const FloatArray& from, uint64_t first, uint64_t count) {
  FloatArray to{from.shape, {}};
  to.shape.back() = count;
  for (uint64_t i = 0; i < from.values.size(); ++i) {
    const uint64_t column = i % from.shape.back();
    if (column >= first && column < first + count) to.values.push_back(from.values[i]);
  }
  return to;
}

Json member(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_object() ? *found : Json::object();
}

/// A recorded entry in the terms of the public header.
struct Recorded {
  AttentionDescription description;
  std::vector<uint32_t> key_counts;
  FloatArray mask;
  int32_t query_offset = 0;
};

void describe_score(const Json& entry, const SafetensorsFile& file, AttentionDescription& d) {
  const std::string name = entry.at("name"), score = entry.at("score");
  const Json params = member(entry, "score_params");
  const auto tensor = [&](const char* what) { return read(file, name + "/" + what); };
  if (score == "scaled_dot" && params.contains("scale")) d.scale = params["scale"].get<float>();
  if (score != "scaled_dot") d.scale = 1.0f;
  if (score == "gaussian") {
    const double sigma = params.at("sigma");
    d.score = AttentionScore::kDistance;
    d.scale = static_cast<float>(1 / (2 * sigma * sigma));
  }
  if (score == "general") d.query = Projection{transposed(tensor("p_W"))};
  if (score == "lowrank") {
    d.query = Projection{transposed(tensor("p_V"))};
    d.key = Projection{transposed(tensor("p_U"))};
  }
  if (score == "additive" || score == "concat") {
    d.score = AttentionScore::kAdditive;
    d.score_vector = tensor("p_v").values;
  }
  if (score == "additive") {
    d.query = Projection{tensor("p_Wq"), tensor("p_b").values};
    d.key = Projection{tensor("p_Wk")};
  }
  if (score == "concat") {
    const uint64_t d_q = entry.at("d_q"), d_k = entry.value("d_k", d_q);
    d.query = Projection{columns(tensor("p_W"), 0, d_q)};
    d.key = Projection{columns(tensor("p_W"), d_q, d_k)};
  }
  if (const auto cap = entry.find("softcap"); cap != entry.end() && cap->is_number())
    d.soft_cap = cap->get<float>();
}

void describe_keys(const Json& entry, const SafetensorsFile& file, Recorded& r) {
  AttentionDescription& d = r.description;
  const std::string name = entry.at("name"), mask = entry.at("mask");
  const Json params = member(entry, "mask_params"), extra = member(entry, "extra");
  r.query_offset = params.value("q_offset", 0);
  r.key_counts = params.value("lengths", std::vector<uint32_t>());
  d.causal = mask.starts_with("causal") || mask == "sliding";
  if (mask == "sliding") d.window = params.at("window");
  if (mask == "local" || mask == "longformer") d.window = params.at("window").get<uint32_t>() + 1;
  if (mask == "longformer") d.pattern = Longformer{params.at("global_tokens"), 8};
  if (mask == "bigbird")
    d.pattern = BigBird{params.at("block"), params.at("window_blocks"), params.at("global_blocks"),
                        params.at("random_blocks")};
  if (mask == "dead_rows") {
    ListedKeys listed{1, entry.at("kv_len"), {}};
    listed.lists.assign(entry.at("q_len").get<size_t>(), {0});
    for (const Json& row : params.at("dead_rows")) listed.lists.at(row.get<size_t>()).clear();
    d.pattern = listed;
  }
  const std::string bias = entry.contains("bias") && entry["bias"].is_string() ? entry["bias"] : "";
  if (bias == "alibi") d.bias = AlibiBias{read(file, name + "/alibi_slopes").values};
  if (bias.starts_with("t5"))
    d.bias = T5Bias{read(file, name + "/rel_table"), extra.at("max_distance"),
                    extra.at("bidirectional")};
  if (bias == "float_mask" || bias == "head_mask") r.mask = read(file, name + "/add_mask");
  d.hard = extra.contains("hard");
  if (!extra.contains("local")) return;
  const Json& local = extra["local"];
  d.local = LocalAttention{};
  if (local.at("gauss")) d.local->sigma = local.at("sigma");
  if (local.at("window_only")) d.local->reach = local.at("D");
  if (!local.at("predict")) return;
  d.local->hidden = Projection{read(file, name + "/p_Wp")};
  FloatArray out = read(file, name + "/p_vp");  // (heads, n)
  out.shape = {out.shape[0], 1, out.shape[1]};
  d.local->out = Projection{out};
}

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (float value : values) largest = std::max(largest, std::fabs(double{value}));
  return largest;
}

double error_of(const std::vector<float>& found, const std::vector<float>& wanted) {
  REQUIRE(found.size() == wanted.size());
  double error = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double off = std::fabs(double{found[i]} - wanted[i]);
    error = std::max(error, std::isnan(off) ? std::numeric_limits<double>::infinity() : off);
  }
  return error / std::max(largest_of(wanted), 1e-30);
}

/// Runs every entry of a file that is attention, or every `step`th; returns how many.
size_t meets_recorded_values(const std::filesystem::path& json, size_t step = 1) {
  const Json entries = read_json(json).at("cases");
  std::filesystem::path tensors = json;
  const SafetensorsFile file(tensors.replace_extension(".safetensors"));
  size_t ran = 0, place = 0;
  for (const Json& entry : entries) {
    const std::string name = entry.at("name");
    if (entry.value("score", "rope") == "rope") continue;  // rotary embedding is an op of its own
    if (place++ % step != 0) continue;
    INFO(name);
    Recorded recorded;
    AttentionDescription& d = recorded.description;
    d.heads = entry.at("heads");
    d.kv_heads = entry.at("kv_heads");
    describe_score(entry, file, d);
    describe_keys(entry, file, recorded);
    const FloatArray q = side_by_side(read(file, name + "/q")),
                     k = side_by_side(read(file, name + "/k")),
                     v = side_by_side(read(file, name + "/v")),
                     wanted = side_by_side(read(file, name + "/out"));
    const bool weights = member(entry, "tensors").contains("weights");
    for (const bool half : {false, true}) {
      d.half = half;
      Attention attention(device(), d);
      const AttentionResult result = attention({.queries = q,
                                                .keys = k,
                                                .values = v,
                                                .key_counts = recorded.key_counts,
                                                .mask = recorded.mask,
                                                .query_offset = recorded.query_offset,
                                                .weights = weights});
      INFO((half ? "16 bits" : "32 bits"));
      // Halves cost 2e-3 and more (conformance/attention_vectors.cpp); hard attention may choose
      // the other of two nearly equal keys.
      // another of two keys.
      const double most = half ? 1e-2 : 1e-5;
      CHECK(result.output.shape == wanted.shape);
      if (!half || !d.hard) CHECK(error_of(result.output.values, wanted.values) <= most);
      if (weights && (!half || !d.hard))
        CHECK(error_of(result.weights.values, read(file, name + "/weights").values) <= most);
      CHECK(result.weights.values.empty() == !weights);
    }
    ++ran;
  }
  return ran;
}

FloatArray random_array(std::vector<uint64_t> shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.8f);
  FloatArray array{std::move(shape), {}};
  array.values.resize(
      std::accumulate(array.shape.begin(), array.shape.end(), uint64_t{1}, std::multiplies<>()));
  for (float& value : array.values) value = normal(random);
  return array;
}

FloatArray projected(const FloatArray& x, const Projection& by) {
  const uint64_t in = by.weight.shape[1], out = by.weight.shape[0];
  FloatArray y{x.shape, {}};
  y.shape.back() = out;
  for (uint64_t row = 0; row < x.values.size() / in; ++row)
    for (uint64_t o = 0; o < out; ++o) {
      double sum = by.bias.empty() ? 0 : by.bias[o];
      for (uint64_t i = 0; i < in; ++i)
        sum += double{by.weight.values[o * in + i]} * x.values[row * in + i];
      y.values.push_back(static_cast<float>(sum));
    }
  return y;
}

}  // namespace

TEST_CASE("The public attention meets values recorded beside this test") {
  CHECK(meets_recorded_values(tests::data_dir() / "attention/attention.json") == 16);
}

TEST_CASE("The public attention meets all recorded values of an independent implementation") {
  const auto folder = tests::fixtures_dir();
  if (folder.empty()) MULCIBER_SKIP("no reference data: set MULCIBER_FIXTURES");
  // Each entry has a pipeline of its own, which takes SwiftShader seconds to compile.
  const size_t step = tests::case_step();
  CHECK(meets_recorded_values(folder / "attention/attention.json", step) > 100 / step);
}

TEST_CASE("Projections of the description are those that arrays could have had before and after") {
  const FloatArray x = random_array({2, 5, 12}, 1);
  const auto projection = [](uint64_t out, uint32_t seed) {
    return Projection{random_array({out, 12}, seed), random_array({out}, seed + 1).values};
  };
  const Projection query = projection(16, 2), key = projection(16, 4), value = projection(12, 6),
                   output = projection(10, 8);
  Attention whole(
      device(),
      {.heads = 4, .query = query, .key = key, .value = value, .output = output, .causal = true});
  const AttentionResult found = whole({.queries = x, .keys = x, .values = x});
  Attention bare(device(), {.heads = 4, .causal = true});
  const AttentionResult inner = bare(
      {.queries = projected(x, query), .keys = projected(x, key), .values = projected(x, value)});
  const FloatArray wanted = projected(inner.output, output);
  CHECK(found.output.shape == std::vector<uint64_t>{2, 5, 10});
  CHECK(error_of(found.output.values, wanted.values) < 1e-5);
}

TEST_CASE("A call with other arrays of the same shapes computes these, and other shapes too") {
  Attention attention(device(), {.heads = 2, .head_mask = {1, 0}});
  const auto call = [&](uint32_t seed, uint64_t keys, std::vector<uint32_t> counts, bool weights) {
    return attention({.queries = random_array({2, 3, 8}, seed),
                      .keys = random_array({2, keys, 8}, seed + 1),
                      .values = random_array({2, keys, 8}, seed + 2),
                      .key_counts = std::move(counts),
                      .weights = weights});
  };
  const AttentionResult first = call(1, 6, {6, 2}, true);
  CHECK(call(5, 6, {1, 5}, true).output.values != first.output.values);
  CHECK(call(1, 9, {}, false).output.values != first.output.values);
  const AttentionResult again = call(1, 6, {6, 2}, true);
  CHECK(again.output.values == first.output.values);
  CHECK(again.weights.values == first.weights.values);
  CHECK(first.weights.shape == std::vector<uint64_t>{2, 2, 3, 6});
  for (size_t i = 4; i < 48; i += 8) CHECK(first.output.values[i] == 0);  // head 1 is off
  for (size_t i = 36; i < 72; ++i)                                        // entry 1 sees two keys
    CHECK((first.weights.values[i] > 0) == (i % 6 < 2));
}

TEST_CASE("One learned query pools every entry, and keys of length 0 give zeros") {
  const FloatArray query = random_array({1, 1, 8}, 1), grid = random_array({3, 7, 8}, 2);
  Attention attention(device(), {});
  const AttentionResult pooled =
      attention({.queries = query, .keys = grid, .values = grid, .weights = true});
  CHECK(pooled.output.shape == std::vector<uint64_t>{3, 1, 8});
  for (size_t entry = 0; entry < 3; ++entry) {
    const auto row = pooled.weights.values.begin() + static_cast<std::ptrdiff_t>(entry * 7);
    CHECK(std::accumulate(row, row + 7, 0.0) == Approx(1));
  }
  const FloatArray none{{3, 0, 8}, {}};
  CHECK(attention({.queries = query, .keys = none, .values = none}).output.values ==
        std::vector<float>(24, 0.0f));
}

TEST_CASE("Compressed keys are causal by whole strides") {
  const FloatArray x = random_array({1, 6, 4}, 3);
  const FloatArray convolution = random_array({4, 4, 2}, 4);
  AttentionDescription description{.causal = true,
                                   .compression = MemoryCompression{convolution, convolution}};
  Attention attention(device(), description);
  const AttentionResult result = attention({.queries = x, .keys = x, .values = x, .weights = true});
  REQUIRE(result.weights.shape == std::vector<uint64_t>{1, 1, 6, 3});
  for (size_t query = 0; query < 6; ++query)
    for (size_t key = 0; key < 3; ++key) {
      INFO("query " << query << ", key " << key);
      CHECK((result.weights.values[query * 3 + key] > 0) == (2 * key + 1 <= query));
    }
  description.window = 3;
  CHECK_THROWS_AS(Attention(device(), description), ShapeError);
}

TEST_CASE("Arrays and descriptions that do not fit are named") {
  const FloatArray x = random_array({2, 3, 8}, 1), other = random_array({2, 4, 8}, 2),
                   narrow = random_array({2, 3, 6}, 3), flat = random_array({6, 8}, 4);
  const FloatArray lying{{2, 3, 8}, {1, 2}};
  const auto message = [&](AttentionDescription description, const FloatArray& q,
                           const FloatArray& k, const FloatArray& v,
                           std::vector<uint32_t> counts = {}, FloatArray mask = {}) -> std::string {
    try {
      Attention attention(device(), std::move(description));
      attention({.queries = q, .keys = k, .values = v, .key_counts = counts, .mask = mask});
    } catch (const ShapeError& error) {
      return error.what();
    }
    return "";
  };
  using Catch::Matchers::Contains;
  CHECK(message({.heads = 2}, x, x, x).empty());
  CHECK_THAT(message({}, lying, x, x), Contains("queries has 2 values, and the shape (2, 3, 8)"));
  CHECK_THAT(message({}, x, flat, flat), Contains("keys has 48 values, and the shape (6, 8)"));
  CHECK_THAT(message({}, x, x, other), Contains("give a value for each key"));
  CHECK_THAT(message({}, x, narrow, narrow), Contains("has 8 columns in a head, a key 6"));
  CHECK_THAT(message({.heads = 3}, x, x, x), Contains("8 columns for 3 heads"));
  CHECK_THAT(message({.heads = 3, .kv_heads = 2}, x, x, x), Contains("3 heads of queries, 2"));
  CHECK_THAT(message({.heads = 2, .head_mask = {1}}, x, x, x), Contains("1 factors for 2 heads"));
  CHECK_THAT(message({.score = AttentionScore::kAdditive}, x, x, x),
             Contains("score_vector has 0 numbers, and 8 are expected"));
  CHECK_THAT(message({}, x, x, x, {3}), Contains("1 key_counts for 2 batch entries"));
  CHECK_THAT(message({}, x, x, x, {}, random_array({1, 1, 3, 4}, 5)),
             Contains("give (1 or 2, 1 or 1, 3, 3)"));
  CHECK_THAT(message({.bias = AlibiBias{}}, x, x, x, {}, random_array({1, 1, 3, 3}, 5)),
             Contains("add the bias to the mask"));
  CHECK_THAT(message({.query = Projection{random_array({8, 5}, 6)}}, x, x, x), Contains("query"));
  CHECK_THAT(message({.heads = 2, .query = Projection{random_array({3, 4, 4}, 6)}}, x, x, x),
             Contains("query has weights for 3 heads of 2"));
  CHECK_THAT(
      message({.local = LocalAttention{.out = Projection{random_array({1, 8}, 7)}}}, x, x, x),
      Contains("give hidden and out"));
}
