// The public attention: uploads arrays and runs a program of layers/attention_family.h.
#include "mulciber/attention.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/half.h"
#include "layers/attention_family.h"
#include "models/attention/attention_plan.h"
#include "models/core/trim_memory.h"
#include "runtime/device.h"

namespace mulciber {
namespace {

constexpr const char* kWhere = "attention";

void check_description(AttentionDescription& d) {
  if (d.kv_heads == 0) d.kv_heads = d.heads;
  if (d.heads == 0 || d.heads % d.kv_heads != 0)
    throw ShapeError(kWhere, fmt::format("{} heads of queries, {} of keys", d.heads, d.kv_heads),
                     "heads of keys divide those of queries");
  if (!d.head_mask.empty() && d.head_mask.size() != d.heads)
    throw ShapeError(
        kWhere, fmt::format("head_mask has {} factors for {} heads", d.head_mask.size(), d.heads),
        "give a factor for each head");
  if (d.local && d.local->hidden.has_value() != d.local->out.has_value())
    throw ShapeError(kWhere, "one of the two projections that predict centers is missing",
                     "give hidden and out, or neither");
  if (!d.compression) return;
  check_array("the convolution of keys", d.compression->keys, 3);
  check_array("the convolution of values", d.compression->values, 3);
  if (d.compression->keys.shape[2] != d.compression->values.shape[2] ||
      d.compression->keys.shape[2] == 0)
    throw ShapeError(kWhere, "the convolutions of keys and values differ in length",
                     "give both one stride");
  if (d.window > 0 || d.local || d.bias.index() != 0 || d.pattern.index() != 0)
    throw ShapeError(kWhere,
                     "a window, a pattern, a center or a bias counts positions, and compressed "
                     "keys have none",
                     "give a mask");
}

/// Combines the heads' projections to one block-diagonal matrix.
FloatArray of_all_heads(const char* what, const FloatArray& weight, uint32_t heads) {
  if (weight.shape.size() != 3) return weight;
  check_array(what, weight, 3);
  if (weight.shape[0] != heads)
    throw ShapeError(kWhere,
                     fmt::format("{} has weights for {} heads of {}", what, weight.shape[0], heads),
                     "give one for each head");
  const auto out = static_cast<uint32_t>(weight.shape[1]),
             in = static_cast<uint32_t>(weight.shape[2]);
  return {{heads * weight.shape[1], heads * weight.shape[2]},
          block_diagonal(weight.values, heads, out, in)};
}

std::vector<uint64_t> extents(const Shape& shape) {
  std::vector<uint64_t> extents(shape.rank());
  for (size_t i = 0; i < extents.size(); ++i) extents[i] = shape[static_cast<int>(i)];
  return extents;
}

}  // namespace

struct Attention::Impl {
  Impl(std::shared_ptr<Device> given_device, AttentionDescription given);

  AttentionResult run(const AttentionInputs& inputs);
  uint64_t trim() {
    return trim_memory(*device_, [&] { forget_program(); });
  }

 private:
  void forget_program() {
    program_.reset();
    signature_.clear();
    buffers_.clear();
  }
  DataType type() const { return description_.half ? DataType::kF16 : DataType::kF32; }
  Tensor allocate(std::vector<Buffer>& buffers, const Shape& shape, DataType type);
  void write(const Tensor& tensor, const std::vector<float>& values);
  std::vector<float> read(const Tensor& tensor) const;
  Linear linear(const char* what, const Projection& projection, uint32_t heads);
  Linear convolution(const char* what, const FloatArray& weight, const std::vector<float>& bias);
  void build(const AttentionPlan& plan, const AttentionInputs& inputs);

  std::shared_ptr<Device> device_;
  AttentionDescription description_;
  AttentionFamily family_;  // weights only; options come with a call
  std::optional<Linear> output_;
  std::vector<Buffer> weights_;

  // The program of the last call, which calls with an equal signature run again.
  std::vector<uint64_t> signature_;
  std::vector<Buffer> buffers_;
  Tensor queries_, keys_, values_, words_, result_, map_;
  std::optional<Program> program_;
};

Attention::Impl::Impl(std::shared_ptr<Device> given_device, AttentionDescription given)
    : device_(std::move(given_device)), description_(std::move(given)) {
  AttentionDescription& d = description_;
  check_description(d);
  if (d.query) family_.query = linear("query", *d.query, d.heads);
  if (d.key) family_.key = linear("key", *d.key, d.kv_heads);
  if (d.value) family_.value = linear("value", *d.value, d.kv_heads);
  if (d.output) output_ = linear("output", *d.output, d.heads);
  if (d.compression) {
    const MemoryCompression& c = *d.compression;
    family_.compression = {.stride = static_cast<uint32_t>(c.keys.shape[2]),
                           .keys = convolution("compression.keys", c.keys, c.keys_bias),
                           .values = convolution("compression.values", c.values, c.values_bias)};
  }
  if (d.local && d.local->hidden) {
    family_.center_hidden = linear("local.hidden", *d.local->hidden, d.heads);
    family_.center_out = linear("local.out", *d.local->out, d.heads);
  }
}

Tensor Attention::Impl::allocate(std::vector<Buffer>& buffers, const Shape& shape, DataType type) {
  const uint64_t bytes = std::max<uint64_t>(shape.elements() * 4, 4);  // there may be no keys
  buffers.push_back(device_->memory().allocate(bytes, MemoryUsage::kActivations));
  return buffers.back().tensor(shape, type);
}

void Attention::Impl::write(const Tensor& tensor, const std::vector<float>& values) {
  if (values.empty()) return;
  BufferView view = tensor.view;
  std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  std::vector<uint16_t> halves;
  if (tensor.type == DataType::kF16) {
    std::transform(values.begin(), values.end(), std::back_inserter(halves), float_to_half);
    bytes = std::as_bytes(std::span(std::as_const(halves)));
  }
  view.size = bytes.size();
  upload(*device_, view, bytes);
}

std::vector<float> Attention::Impl::read(const Tensor& tensor) const {
  const BufferView view = program_->view(tensor);
  if (tensor.type == DataType::kF32) return download_as<float>(*device_, view);
  const std::vector<std::byte> bytes = download(*device_, view);
  std::vector<float> values(tensor.shape.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half;
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    values[i] = half_to_float(half);
  }
  return values;
}

Linear Attention::Impl::linear(const char* what, const Projection& projection, uint32_t heads) {
  const FloatArray weight = of_all_heads(what, projection.weight, heads);
  check_array(what, weight, 2);
  const Shape shape{std::span(weight.shape)};
  Linear result{allocate(weights_, shape, type())};
  write(result.weight, weight.values);
  if (projection.bias.empty()) return result;
  check_array(fmt::format("the bias of {}", what), {{shape[0]}, projection.bias}, 1);
  result.bias = allocate(weights_, {shape[0]}, DataType::kF32);
  write(*result.bias, projection.bias);
  return result;
}

Linear Attention::Impl::convolution(const char* what, const FloatArray& weight,
                                    const std::vector<float>& bias) {
  const auto out = static_cast<uint32_t>(weight.shape[0]),
             in = static_cast<uint32_t>(weight.shape[1]),
             taps = static_cast<uint32_t>(weight.shape[2]);
  const FloatArray rows = {{out, uint64_t{taps} * in},
                           convolution_rows(weight.values, out, in, taps)};
  return linear(what, {rows, bias}, 1);
}

void Attention::Impl::build(const AttentionPlan& plan, const AttentionInputs& inputs) {
  forget_program();
  const auto input = [&](const FloatArray& array) {
    return allocate(buffers_, Shape(std::span(array.shape)), type());
  };
  queries_ = input(inputs.queries);
  keys_ = input(inputs.keys);
  values_ = &inputs.keys == &inputs.values ? keys_ : input(inputs.values);
  AttentionFamily attention = family_;
  attention.options = plan.options;
  if (attention.options.control) {
    words_ = allocate(buffers_, {plan.words.size()}, DataType::kU32);
    attention.options.control->tensor = words_;
  }
  ProgramBuilder builder(*device_, kWhere);
  result_ = attention(builder, {queries_}, {keys_}, {values_}, inputs.weights ? &map_ : nullptr);
  if (output_) {
    const auto scope = builder.scope("output");
    result_ = (*output_)(builder, result_);
  }
  builder.keep(result_);
  if (inputs.weights) builder.keep(map_);
  program_ = builder.build();
}

AttentionResult Attention::Impl::run(const AttentionInputs& inputs) {
  const AttentionPlan plan = plan_attention(description_, inputs);
  // The signature holds everything that changes the recorded program.
  std::vector<uint64_t> signature = {inputs.weights,
                                     &inputs.keys == &inputs.values,
                                     plan.words.size(),
                                     inputs.key_counts.size(),
                                     static_cast<uint64_t>(plan.options.bias),
                                     plan.options.bias_span,
                                     inputs.query_offset.has_value(),
                                     static_cast<uint32_t>(inputs.query_offset.value_or(0))};
  for (const FloatArray* array : {&inputs.queries, &inputs.keys, &inputs.values})
    signature.insert(signature.end(), array->shape.begin(), array->shape.end());
  if (signature != signature_) {
    build(plan, inputs);
    signature_ = std::move(signature);
  }
  write(queries_, inputs.queries.values);
  write(keys_, inputs.keys.values);
  if (&inputs.keys != &inputs.values) write(values_, inputs.values.values);
  if (plan.words.size() > 0) {
    BufferView view = words_.view;
    view.size = 4 * plan.words.size();
    upload(*device_, view, plan.words.bytes());
  }
  program_->run();
  AttentionResult result{.output = {extents(result_.shape), read(result_)}};
  if (inputs.weights) result.weights = {extents(map_.shape), read(map_)};
  return result;
}

Attention::Attention(std::shared_ptr<Device> device, AttentionDescription description)
    : impl_(std::make_unique<Impl>(std::move(device), std::move(description))) {}
Attention::~Attention() = default;
Attention::Attention(Attention&&) noexcept = default;
Attention& Attention::operator=(Attention&&) noexcept = default;

AttentionResult Attention::operator()(const AttentionInputs& inputs) { return impl_->run(inputs); }
uint64_t Attention::trim() { return impl_->trim(); }

}  // namespace mulciber
