// Transformer blocks against a plain double-precision definition: norm before and after the
// sublayers, keys and values of different sizes, padding, head masks, and steps over a cache.
#include "layers/embedding.h"
#include "layers/transformer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "mulciber/error.h"
#include "ops/elementwise.h"
#include "tests/catch.h"
#include "tests/device_tensors.h"

using namespace mulciber;

namespace {

constexpr uint32_t kWidth = 12, kHidden = 20, kRows = 2;
constexpr HeadSizes kSizes = {.heads = 2, .key_size = 4, .value_size = 6};
constexpr float kHeadFactors[] = {1.0f, 0.25f};

using Row = std::vector<double>;
using Rows = std::vector<Row>;
using Batch = std::vector<Rows>;  // (rows, length, columns)

/// Random weights in two copies: on the device, and as doubles.
class Parameters : public tests::DeviceTensors {
 public:
  Tensor tensor(Shape shape, const std::vector<float>& values) {
    return put(shape, DataType::kF32, std::as_bytes(std::span(values)));
  }
  Tensor random(Shape shape, double deviation, double mean = 0) {
    std::normal_distribution<double> normal(mean, deviation);
    std::vector<float> values(shape.elements());
    for (float& value : values) value = static_cast<float>(normal(random_));
    return tensor(shape, values);
  }
  Linear linear(uint64_t rows, uint64_t columns) {
    return {random({rows, columns}, 0.4), random({rows}, 0.3)};
  }
  Norm norm() { return {random({2, kWidth}, 0.3, 0.5)}; }
  SelfAttention self_attention() {
    return {kSizes, linear(kSizes.key_columns() + kSizes.memory_columns(), kWidth),
            linear(kWidth, kSizes.value_columns())};
  }
  CrossAttention cross_attention() {
    return {kSizes, linear(kSizes.key_columns(), kWidth), linear(kSizes.memory_columns(), kWidth),
            linear(kWidth, kSizes.value_columns())};
  }
  FeedForward feed_forward() {
    return {linear(kHidden, kWidth), linear(kWidth, kHidden), Activation::kRelu};
  }

 private:
  std::mt19937 random_{7};
};

// --- The definition
// ---------------------------------------------------------------------------------

Row values_of(const Tensor& tensor) {
  BufferView view = tensor.view;
  view.size = tensor.bytes();
  const std::vector<float> values = download_as<float>(tests::shared_device(), view);
  return {values.begin(), values.end()};
}

Rows reference(const Linear& linear, const Rows& x, bool relu = false) {
  const Row weight = values_of(linear.weight), bias = values_of(*linear.bias);
  Rows y;
  for (const Row& row : x) {
    Row out = bias;
    for (size_t n = 0; n < out.size(); ++n) {
      for (size_t k = 0; k < row.size(); ++k) out[n] += weight[n * row.size() + k] * row[k];
      if (relu) out[n] = std::max(out[n], 0.0);
    }
    y.push_back(out);
  }
  return y;
}

Rows add(Rows x, const Rows& y) {
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t j = 0; j < x[i].size(); ++j) x[i][j] += y[i][j];
  return x;
}

Rows reference(const Norm& norm, Rows x) {
  const Row gain_bias = values_of(norm.weight);
  for (Row& row : x) {
    double mean = 0, variance = 0;
    for (double value : row) mean += value / row.size();
    for (double value : row) variance += (value - mean) * (value - mean) / row.size();
    for (size_t j = 0; j < row.size(); ++j)
      row[j] = (row[j] - mean) / std::sqrt(variance + norm.epsilon) * gain_bias[j] +
               gain_bias[row.size() + j];
  }
  return x;
}

/// q: rows of queries from column 0; memory: keys, then values, from column `first`.
Rows attend(const Rows& q, const Rows& memory, size_t first, size_t keys, bool causal) {
  Rows result;
  for (size_t i = 0; i < q.size(); ++i) {
    Row out(kSizes.value_columns(), 0.0);
    for (size_t h = 0; h < kSizes.heads; ++h) {
      const size_t seen = causal ? std::min(keys, i + 1) : keys;
      Row weights(seen);
      double sum = 0;
      for (size_t j = 0; j < seen; ++j) {
        double score = 0;
        for (size_t d = 0; d < kSizes.key_size; ++d)
          score += q[i][h * kSizes.key_size + d] * memory[j][first + h * kSizes.key_size + d];
        weights[j] = std::exp(score / std::sqrt(double{kSizes.key_size}));
        sum += weights[j];
      }
      const size_t values = first + kSizes.key_columns() + h * kSizes.value_size;
      for (size_t j = 0; j < seen; ++j)
        for (size_t d = 0; d < kSizes.value_size; ++d)
          out[h * kSizes.value_size + d] +=
              weights[j] / sum * memory[j][values + d] * double{kHeadFactors[h]};
    }
    result.push_back(out);
  }
  return result;
}

template <typename Sublayer>
Rows residual(const Rows& x, const Norm& norm, NormPlacement placement, Sublayer&& sublayer) {
  return placement == NormPlacement::kAfter ? reference(norm, add(x, sublayer(x)))
                                            : add(x, sublayer(reference(norm, x)));
}

Rows reference(const SelfAttention& layer, const Rows& x, size_t keys, bool causal) {
  const Rows heads = reference(layer.qkv, x);
  return reference(layer.out, attend(heads, heads, kSizes.key_columns(), keys, causal));
}

Rows reference(const FeedForward& layer, const Rows& x) {
  return reference(layer.down, reference(layer.up, x, true));
}

Rows reference(const EncoderLayer& layer, const Rows& x, size_t length) {
  const Rows attended = residual(x, *layer.self_attention_norm, layer.norms, [&](const Rows& y) {
    return reference(layer.self_attention, y, length, false);
  });
  return residual(attended, layer.feed_forward_norm, layer.norms,
                  [&](const Rows& y) { return reference(layer.feed_forward, y); });
}

Rows reference(const DecoderLayer& layer, const Rows& x, const Rows& memory, size_t memory_length) {
  const Rows attended = residual(x, layer.self_attention_norm, layer.norms, [&](const Rows& y) {
    return reference(layer.self_attention, y, y.size(), true);
  });
  const Rows crossed =
      residual(attended, layer.cross_attention_norm, layer.norms, [&](const Rows& y) {
        const CrossAttention& cross = layer.cross_attention;
        return reference(cross.out,
                         attend(reference(cross.query, y), reference(cross.key_value, memory), 0,
                                memory_length, false));
      });
  return residual(crossed, layer.feed_forward_norm, layer.norms,
                  [&](const Rows& y) { return reference(layer.feed_forward, y); });
}

// --- Device and definition side by side
// -------------------------------------------------------------

Batch batch_of(const Tensor& tensor) {
  const Row values = values_of(tensor);
  Batch batch(tensor.shape[0], Rows(tensor.shape[1]));
  auto next = values.begin();
  for (Rows& rows : batch)
    for (Row& row : rows) {
      row.assign(next, next + tensor.shape[2]);
      next += tensor.shape[2];
    }
  return batch;
}

/// Largest difference over the first `length` positions of a row.
double difference(const Rows& expected, const Rows& found, size_t length) {
  double worst = 0;
  for (size_t i = 0; i < length; ++i)
    for (size_t j = 0; j < expected[i].size(); ++j) {
      const double error = std::abs(expected[i][j] - found[i][j]);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  return worst;
}

Tensor output_of(const Program& program, const Tensor& tensor) {
  Tensor result = tensor;
  result.arena_id = -1;
  result.byte_offset = 0;
  result.view = program.view(tensor);
  return result;
}

constexpr double kLayerTolerance = 2e-5;

}  // namespace

TEST_CASE("An encoder layer is what its definition says") {
  Device& device = tests::shared_device();
  const NormPlacement placement = GENERATE(NormPlacement::kAfter, NormPlacement::kBefore);
  Parameters parameters;
  const EncoderLayer layer = {parameters.self_attention(), parameters.norm(),
                              parameters.feed_forward(), parameters.norm(), placement};
  const Tensor x = parameters.random({kRows, 5, kWidth}, 1);
  const std::vector<uint32_t> lengths = {5, 3};
  const Tensor control =
      parameters.words({lengths[0], lengths[1], std::bit_cast<uint32_t>(kHeadFactors[0]),
                        std::bit_cast<uint32_t>(kHeadFactors[1])});

  ProgramBuilder builder(device, "encoder layer");
  const AttentionControl view = {
      .tensor = control, .key_counts = {{0, kRows}}, .head_mask = {{2, 2}}};
  const Tensor y = layer(builder, convert(builder, x, DataType::kF32), {.control = view});
  builder.keep(y);
  Program program = builder.build();
  program.run();

  const Batch inputs = batch_of(x), found = batch_of(output_of(program, y));
  for (size_t row = 0; row < kRows; ++row) {
    INFO("row " << row << (placement == NormPlacement::kAfter ? ", norm after" : ", norm before"));
    CHECK(difference(reference(layer, inputs[row], lengths[row]), found[row], 5) < kLayerTolerance);
  }
}

TEST_CASE("A decoder layer gives the same by whole sequences and by steps") {
  Device& device = tests::shared_device();
  const NormPlacement placement = GENERATE(NormPlacement::kAfter, NormPlacement::kBefore);
  constexpr uint32_t kTarget = 4, kSource = 5, kCapacity = 6;
  Parameters parameters;
  const DecoderLayer layer = {parameters.self_attention(),
                              parameters.norm(),
                              parameters.cross_attention(),
                              parameters.norm(),
                              parameters.feed_forward(),
                              parameters.norm(),
                              placement};
  const Tensor x = parameters.random({kRows, kTarget, kWidth}, 1);
  const Tensor memory = parameters.random({kRows, kSource, kWidth}, 1);
  const std::vector<uint32_t> lengths = {2, 5};
  const std::vector<uint32_t> words = {0, lengths[0], lengths[1],
                                       std::bit_cast<uint32_t>(kHeadFactors[0]),
                                       std::bit_cast<uint32_t>(kHeadFactors[1])};
  const Tensor control = parameters.words(words);
  const AttentionView cross = {
      .control =
          AttentionControl{.tensor = control, .key_counts = {{1, kRows}}, .head_mask = {{3, 2}}}};

  ProgramBuilder whole(device, "decoder layer");
  const Tensor y =
      layer(whole, convert(whole, x, DataType::kF32),
            {.self = {.control = AttentionControl{.tensor = control, .head_mask = {{3, 2}}},
                      .causal = true},
             .cross = cross,
             .memory = layer.cross_attention.project(whole, memory)});
  whole.keep(y);
  Program program = whole.build();
  program.run();
  const Batch inputs = batch_of(x), memories = batch_of(memory);
  const Batch found = batch_of(output_of(program, y));
  for (size_t row = 0; row < kRows; ++row) {
    INFO("row " << row << (placement == NormPlacement::kAfter ? ", norm after" : ", norm before"));
    CHECK(difference(reference(layer, inputs[row], memories[row], lengths[row]), found[row],
                     kTarget) < kLayerTolerance);
  }

  // The decoder gets one token at a time: the control holds the position, and the cache the keys so
  // far.
  const Tensor cache = parameters.random({kRows, kCapacity, kSizes.memory_columns()}, 1);
  const Tensor token = parameters.random({kRows, 1, kWidth}, 1);
  ProgramBuilder single(device, "decoder step");
  const AttentionControl past = {
      .tensor = control, .key_counts = {{0, 1}}, .key_count_extra = 1, .head_mask = {{3, 2}}};
  const Tensor z = layer(single, convert(single, token, DataType::kF32),
                         {.self = {.control = past},
                          .cache = KeyValueCache{cache, control, {0, 1}},
                          .cross = cross,
                          .memory = layer.cross_attention.project(single, memory)});
  single.keep(z);
  Program step = single.build();
  for (uint32_t position = 0; position < kTarget; ++position) {
    std::vector<float> values;
    for (const Rows& rows : inputs)
      values.insert(values.end(), rows[position].begin(), rows[position].end());
    upload(device, token.view, std::as_bytes(std::span(values)));
    upload(device, control.view, std::as_bytes(std::span(&position, 1)));
    step.run();
    const Batch stepped = batch_of(output_of(step, z));
    for (size_t row = 0; row < kRows; ++row) {
      INFO("row " << row << " position " << position);
      CHECK(difference({found[row][position]}, stepped[row], 1) < kLayerTolerance);
    }
  }
}

TEST_CASE("Traces keep what layers leave, by path") {
  Device& device = tests::shared_device();
  Parameters parameters;
  const EncoderLayer layer = {parameters.self_attention(), parameters.norm(),
                              parameters.feed_forward(), parameters.norm()};
  const Tensor x = parameters.random({1, 5, kWidth}, 1);
  Trace trace;
  trace.attentions = true;
  ProgramBuilder builder(device, "encoder layer");
  {
    const auto scope = builder.layer("layers.0");
    layer(builder, x, {.trace = &trace});
  }
  Program program = builder.build();
  program.run();
  const Tensor& map = trace.at("layers.0.self_attn.probabilities");
  CHECK(map.shape == Shape{1, kSizes.heads, 5, 5});
  const Row values = values_of(output_of(program, map));
  for (size_t row = 0; row < values.size(); row += 5) {
    double sum = 0;
    for (size_t i = 0; i < 5; ++i) sum += values[row + i];
    CHECK(std::abs(sum - 1) < 1e-6);
  }
  CHECK_THROWS_WITH(trace.at("layers.1.output"),
                    Catch::Matchers::ContainsSubstring("layers.1.output"));
}

TEST_CASE("A shape error names the layer") {
  Device& device = tests::shared_device();
  Parameters parameters;
  const FeedForward wrong = {parameters.linear(kHidden, kWidth),
                             parameters.linear(kWidth, kHidden + 1)};
  ProgramBuilder builder(device, "test");
  const auto outer = builder.layer("decoder");
  const auto inner = builder.scope("layers.3");
  CHECK_THROWS_WITH(wrong(builder, parameters.random({2, kWidth}, 1)),
                    Catch::Matchers::ContainsSubstring("decoder.layers.3.fc2"));
}

TEST_CASE("Sinusoidal positions are Marian's: sines first, cosines after") {
  const std::vector<float> table = sinusoidal_positions(3, 6);
  for (size_t position = 0; position < 3; ++position)
    for (size_t pair = 0; pair < 3; ++pair) {
      const double angle = position * std::pow(10000.0, -2.0 * pair / 6);
      CHECK(std::abs(table[position * 6 + pair] - std::sin(angle)) < 1e-6);
      CHECK(std::abs(table[position * 6 + 3 + pair] - std::cos(angle)) < 1e-6);
    }
  // An odd width has one more sine than cosines.
  const std::vector<float> odd = sinusoidal_positions(2, 3);
  CHECK(std::abs(odd[3 + 1] - std::sin(std::pow(10000.0, -2.0 / 3))) < 1e-6);
  CHECK(std::abs(odd[3 + 2] - std::cos(1.0)) < 1e-6);
}
