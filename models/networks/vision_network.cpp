#include "models/networks/vision_network.h"

#include <algorithm>
#include <cmath>

#include "ops/copy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/patches.h"
#include "runtime/transfer.h"

namespace mulciber {
namespace {

Tensor wide(ProgramBuilder& builder, const Tensor& x) {
  return x.type == DataType::kF32 ? x : convert(builder, x, DataType::kF32);
}

/// Copies columns [first, first + columns) of x, (rows, ...), to a new tensor.
Tensor columns_of(ProgramBuilder& builder, const Tensor& x, uint64_t first, uint64_t columns) {
  const Tensor part = builder.activation({x.shape.rows(), columns}, x.type);
  copy_columns(
      builder, x, part,
      {.first_column = static_cast<uint32_t>(first), .columns = static_cast<uint32_t>(columns)});
  return part;
}

/// Hidden state of token `number` of every image, f32: (images, D).
Tensor state_of(ProgramBuilder& builder, const Tensor& states, uint64_t number) {
  const uint64_t D = states.shape.columns();
  const Tensor rows = states.reshaped({states.shape[0], states.shape[1] * D});
  return wide(builder, columns_of(builder, rows, number * D, D));
}

/// The four taps of bicubic interpolation and their weights: Keys 1981, with PyTorch's a.
struct CubicTaps {
  uint32_t cell[4];
  double weight[4];
};
CubicTaps cubic_taps(uint32_t at, uint32_t from, uint32_t to) {
  constexpr double kA = -0.75;
  const double place = (at + 0.5) * from / to - 0.5, first = std::floor(place);
  CubicTaps taps;
  for (int i = 0; i < 4; ++i) {
    const double cell = first + i - 1, distance = std::fabs(place - cell);
    taps.cell[i] = static_cast<uint32_t>(std::clamp(cell, 0.0, from - 1.0));
    const double d2 = distance * distance, d3 = d2 * distance;
    taps.weight[i] = distance <= 1   ? (kA + 2) * d3 - (kA + 3) * d2 + 1
                     : distance <= 2 ? kA * d3 - 5 * kA * d2 + 8 * kA * distance - 4 * kA
                                     : 0;
  }
  return taps;
}

}  // namespace

std::vector<float> resized_positions(std::span<const float> positions, uint32_t columns,
                                     ImageSize grid, ImageSize to) {
  if (grid == to) return {positions.begin(), positions.end()};
  std::vector<float> result(uint64_t{to.height} * to.width * columns);
  for (uint32_t y = 0; y < to.height; ++y) {
    const CubicTaps down = cubic_taps(y, grid.height, to.height);
    for (uint32_t x = 0; x < to.width; ++x) {
      const CubicTaps across = cubic_taps(x, grid.width, to.width);
      for (uint32_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j)
            sum += down.weight[i] * across.weight[j] *
                   positions[(uint64_t{down.cell[i]} * grid.width + across.cell[j]) * columns +
                             column];
        result[(uint64_t{y} * to.width + x) * columns + column] = static_cast<float>(sum);
      }
    }
  }
  return result;
}

// --- Images --------------------------------------------------------------------------------------

std::vector<float> VisionTowerNetwork::first_states(Device& device, ImageSize size) const {
  const uint32_t D = tower_.width, P = tower_.patch;
  const uint64_t learned = embedding_.first_tokens.size() * uint64_t{D};
  const std::vector<float> positions = download_as<float>(device, embedding_.positions.view);
  std::vector<float> states(positions.begin(),
                            positions.begin() + static_cast<std::ptrdiff_t>(learned));
  for (size_t i = 0; i < embedding_.first_tokens.size(); ++i) {
    const std::vector<float> token = download_as<float>(device, embedding_.first_tokens[i].view);
    for (uint32_t column = 0; column < D; ++column) states[i * D + column] += token[column];
  }
  std::vector<float> patches = resized_positions(std::span(positions).subspan(learned), D,
                                                 {tower_.patches_down(), tower_.patches_across()},
                                                 {size.height / P, size.width / P});
  if (embedding_.bias) {
    const std::vector<float> bias = download_as<float>(device, embedding_.bias->view);
    for (size_t i = 0; i < patches.size(); ++i) patches[i] += bias[i % D];
  }
  states.insert(states.end(), patches.begin(), patches.end());
  return states;
}

Tensor VisionTowerNetwork::states(ProgramBuilder& builder, const Tensor& pixels,
                                  const Tensor& first, const ImageNormalization& normalization,
                                  Trace* trace) const {
  const Tensor embedded = [&] {
    const auto scope = builder.layer("embedding");
    // The convolution is a matrix product. Rows of learned tokens are zeros, and add nothing.
    const Tensor rows =
        unfold_patches(builder, pixels,
                       {.size = tower_.patch,
                        .channels = tower_.channels,
                        .zero_rows = static_cast<uint32_t>(tower_.first_tokens.size()),
                        .scale = normalization.scale,
                        .shift = normalization.shift,
                        .result = activations_});
    const uint64_t images = rows.shape[0], tokens = rows.shape[1], D = tower_.width;
    Tensor x = builder.activation({images, tokens, D}, activations_);
    const Tensor start =
        activations_ == DataType::kF32 ? first : convert(builder, first, activations_);
    copy_columns(builder, start.reshaped({1, tokens * D}), x.reshaped({images, tokens * D}));
    matmul(builder, rows, embedding_.patches, {.accumulate_into = x});
    if (embedding_.norm) x = (*embedding_.norm)(builder, x);
    if (trace && trace->hidden_states) trace->keep_copy(builder, "output", x);
    return x;
  }();
  return encoder_(builder, embedded, {}, trace);
}

Tensor VisionTowerNetwork::attention_pooled(ProgramBuilder& builder, const Tensor& states) const {
  const AttentionPooling& head = attention_pooling_.value();
  const uint64_t images = states.shape[0], D = tower_.width;
  const Tensor probe = builder.activation({images, 1, D}, DataType::kF32);
  copy_columns(builder, head.probe, probe);
  const Tensor memory = head.attention.project(builder, states);
  const Tensor x = head.attention(builder, probe, memory, {});
  head.feed_forward(builder, head.norm(builder, x), x);
  return x.reshaped({images, D});
}

Tensor VisionTowerNetwork::pooled(ProgramBuilder& builder, const Tensor& states) const {
  if (attention_pooling_) return attention_pooled(builder, wide(builder, states));
  const Tensor x = state_of(builder, states, 0);
  return pooled_norm_ ? (*pooled_norm_)(builder, x) : x;
}

Tensor VisionTowerNetwork::mean(ProgramBuilder& builder, const Tensor& states) const {
  // A product with a row of equal weights for each image would need the transpose; attention with
  // equal scores does not (models/networks/text_encoder_network.cpp).
  const uint64_t images = states.shape[0], D = tower_.width;
  const uint64_t first = tower_.first_tokens.size(), patches = states.shape[1] - first;
  uint32_t value_size = 128;
  while (D % value_size != 0) --value_size;
  const auto heads = static_cast<uint32_t>(D / value_size);
  constexpr uint32_t kKeySize = 4;
  const Tensor of_patches =
      columns_of(builder, wide(builder, states).reshaped({images, states.shape[1] * D}), first * D,
                 patches * D);
  const Tensor memory = fill(builder, {images, patches, heads * kKeySize + D}, 0);
  copy_columns(builder, of_patches.reshaped({images, patches, D}), memory,
               {.into_column = heads * kKeySize});
  const Tensor query = fill(builder, {images, 1, heads * kKeySize}, 0);
  const Tensor mean = attention(
      builder, {query, 0}, {memory, 0}, {memory, heads * kKeySize},
      {.heads = heads, .kv_heads = heads, .head_size = kKeySize, .value_size = value_size});
  return mean.reshaped({images, D});
}

Tensor VisionTowerNetwork::pooler_output(ProgramBuilder& builder, const Tensor& states) const {
  return pooler_.value()(builder, state_of(builder, states, 0), Activation::kTanh);
}

Tensor VisionTowerNetwork::projected(ProgramBuilder& builder, const Tensor& states) const {
  const Tensor x = pooled(builder, states);
  return projection_ ? (*projection_)(builder, x) : x;
}

Tensor VisionTowerNetwork::logits(ProgramBuilder& builder, const Tensor& states) const {
  const Tensor of_class = state_of(builder, states, 0);
  const uint64_t D = tower_.width;
  if (head_ == VisionHead::kClassAndMean) {
    const Tensor both = builder.activation({states.shape[0], 2 * D}, DataType::kF32);
    copy_columns(builder, of_class, both);
    copy_columns(builder, mean(builder, states), both, {.into_column = static_cast<uint32_t>(D)});
    return classifier_.value()(builder, both);
  }
  const Tensor logits = classifier_.value()(builder, of_class);
  if (teacher_) teacher_->add_to(builder, state_of(builder, states, 1), logits);
  return logits;
}

uint64_t live_columns(const VisionTower& tower) {
  // The sum counts the residual stream, a sublayer's result, and the largest of three: queries,
  // keys, values and attention's output; the hidden layer; the patches.
  const uint64_t patch = uint64_t{tower.channels} * tower.patch * tower.patch;
  return 2 * uint64_t{tower.width} +
         std::max({4 * uint64_t{tower.width}, uint64_t{tower.hidden}, patch});
}

uint64_t VisionTowerNetwork::widest_columns() const {
  const uint64_t patch = uint64_t{tower_.channels} * tower_.patch * tower_.patch;
  return std::max({3 * uint64_t{tower_.width}, uint64_t{tower_.hidden}, patch});
}

// --- Texts ---------------------------------------------------------------------------------------

TextTowerControl plan_text_control(uint32_t rows, uint32_t length) {
  ControlLayout all;
  TextTowerControl control = {.rows = rows, .length = length};
  control.tokens = all.add<uint32_t>(uint64_t{rows} * length);
  control.ends = all.add<uint32_t>(rows);
  control.words = all.words();
  return control;
}

Tensor TextTowerNetwork::states(ProgramBuilder& builder, const Tensor& control,
                                const TextTowerControl& layout) const {
  const Tensor embedded = [&] {
    const auto scope = builder.layer("embedding");
    return embedding_(builder, {.control = control,
                                .tokens = layout.tokens,
                                .rows = layout.rows,
                                .length = layout.length,
                                .type = activations_});
  }();
  // Padding follows a text: causal layers do not attend to it, and other models were trained with
  // it.
  return encoder_(builder, embedded, {});
}

Tensor TextTowerNetwork::pooled(ProgramBuilder& builder, const Tensor& states,
                                const Tensor& control, const TextTowerControl& layout) const {
  const uint64_t D = tower_.width;
  const Tensor rows = wide(builder, states).reshaped({uint64_t{layout.rows} * layout.length, D});
  const Tensor ends =
      embedding(builder, rows, {.control = control, .tokens = layout.ends, .rows = layout.rows});
  const Tensor x = ends.reshaped({layout.rows, D});
  return head_ ? (*head_)(builder, x) : x;
}

Tensor TextTowerNetwork::projected(ProgramBuilder& builder, const Tensor& pooled) const {
  return projection_ ? (*projection_)(builder, pooled) : pooled;
}

uint32_t TextTowerNetwork::end_of(std::span<const uint32_t> ids) const {
  auto found = ids.end() - 1;
  if (tower_.largest_id_ends) {
    found = std::max_element(ids.begin(), ids.end());
  } else if (tower_.end) {
    found = std::find(ids.begin(), ids.end(), *tower_.end);
    if (found == ids.end()) found = ids.begin();  // argmax of a comparison returns 0 too
  }
  return static_cast<uint32_t>(found - ids.begin());
}

}  // namespace mulciber
