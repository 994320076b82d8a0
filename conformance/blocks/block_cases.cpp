#include "conformance/blocks/block_cases.h"

#include <fmt/format.h>

#include <cmath>

#include "conformance/blocks/block_parts.h"
#include "conformance/bounds.h"
#include "conformance/ops/activation_reference.h"

namespace mulciber::conformance {
namespace {

struct Sizes {
  uint64_t rows = 2, length = 7, memory_length = 9;
  uint32_t width = 32;
  HeadSizes heads = {.heads = 4, .key_size = 8, .value_size = 8};
  uint64_t hidden = 64;

  std::string name() const {
    std::string text =
        fmt::format("r{}_l{}_d{}_h{}x{}", rows, length, width, heads.heads, heads.key_size);
    return heads.value_size == heads.key_size ? text : text + fmt::format("_v{}", heads.value_size);
  }
};

/// Collects the inputs of a case; parts refer to them by number.
class Inputs {
 public:
  Inputs(OpCase& op_case, KernelTypes types) : case_(op_case), types_(types) {
    case_.types = types;
  }

  size_t activations(Shape shape) { return add(normal_input(shape, types_.activation)); }
  size_t cache(Shape shape) { return add(normal_input(shape, types_.weight)); }
  size_t words(std::vector<uint32_t> words) { return add(words_input(std::move(words))); }
  LinearPart linear(uint64_t n, uint64_t k) {
    const size_t weight = add(normal_input({n, k}, types_.weight, 1 / std::sqrt(double(k))));
    return {weight, add(normal_input({n}, DataType::kF32, 0.3))};
  }
  NormPart norm(uint64_t width) {
    return {add(normal_input({2, width}, DataType::kF32, 0.3, 0.7))};
  }
  SelfAttentionPart self(const Sizes& s) {
    const LinearPart qkv = linear(s.heads.key_columns() + s.heads.memory_columns(), s.width);
    return {s.heads, qkv, linear(s.width, s.heads.value_columns())};
  }
  CrossAttentionPart cross(const Sizes& s) {
    const LinearPart query = linear(s.heads.key_columns(), s.width);
    const LinearPart key_value = linear(s.heads.memory_columns(), s.width);
    return {s.heads, query, key_value, linear(s.width, s.heads.value_columns())};
  }
  FeedForwardPart feed_forward(const Sizes& s, Activation activation) {
    const LinearPart up = linear(s.hidden, s.width);
    return {up, linear(s.width, s.hidden), activation};
  }
  LayerPart layer(const Sizes& s, NormPlacement norms, bool decoder) {
    LayerPart part;
    part.self = self(s);
    part.self_norm = norm(s.width);
    if (decoder) {
      part.cross = cross(s);
      part.cross_norm = norm(s.width);
    }
    part.feed_forward = feed_forward(s, Activation::kRelu);
    part.feed_forward_norm = norm(s.width);
    part.norms = norms;
    return part;
  }

 private:
  size_t add(CaseInput input) {
    case_.inputs.push_back(std::move(input));
    return case_.inputs.size() - 1;
  }
  OpCase& case_;
  KernelTypes types_;
};

// The words of control in a case: an unused word, key counts of the sequence and of the memory,
// factors of heads, ancestry.
struct Control {
  ControlWords words{1, 0xdeadbeef};
  AttentionControl self, cross;

  void add_head_masks(uint32_t heads) {
    std::vector<float> factors;
    for (uint32_t head = 0; head < heads; ++head)
      factors.push_back(1.0f - 0.25f * static_cast<float>(head));
    self.head_mask = cross.head_mask = words.append(factors);
  }
};

enum class Mask : uint8_t { kNone, kPadded, kCausal, kHeads };
const char* name_of(Mask mask) {
  constexpr const char* kNames[] = {"all", "padded", "causal", "head_factors"};
  return kNames[static_cast<size_t>(mask)];
}

// Lengths of rows; the first row is full.
std::vector<uint32_t> lengths(uint64_t rows, uint64_t most) {
  std::vector<uint32_t> counts;
  for (uint64_t row = 0; row < rows; ++row)
    counts.push_back(static_cast<uint32_t>(most - row * (most - 1) / rows));
  return counts;
}

Control control_for(Mask mask, const Sizes& s) {
  Control control;
  if (mask == Mask::kPadded)
    control.self.key_counts = control.words.append(lengths(s.rows, s.length));
  if (mask == Mask::kHeads) control.add_head_masks(s.heads.heads);
  control.cross.key_counts = control.words.append(lengths(s.rows, s.memory_length));
  return control;
}

AttentionView view_of(AttentionControl words, const Tensor& tensor, bool causal,
                      uint32_t rows_per_kv = 1) {
  words.tensor = tensor;
  return {.control = words, .causal = causal, .rows_per_kv = rows_per_kv};
}

OpCase self_attention_case(const Sizes& s, KernelTypes types, Mask mask) {
  OpCase c;
  c.name = fmt::format("self_attention.{}.{}", s.name(), name_of(mask));
  Inputs inputs(c, types);
  const size_t x = inputs.activations({s.rows, s.length, s.width});
  const SelfAttentionPart part = inputs.self(s);
  const Control control = control_for(mask, s);
  const size_t words = inputs.words(control.words.words());
  const bool causal = mask == Mask::kCausal;
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> t) {
    const SelfAttention layer = self_attention_of(part, t);
    return std::vector<Tensor>{layer(builder, t[x], view_of(control.self, t[words], causal))};
  };
  c.reference = [=](std::span<const CpuTensor> t, const Arithmetic& arithmetic) {
    const BlockView view{t[words], control.self, causal};
    return std::vector<CpuTensor>{BlockReference(t, arithmetic).attention(part, t[x], view)};
  };
  return c;
}

OpCase cross_attention_case(const Sizes& s, KernelTypes types, uint32_t rows_per_memory) {
  OpCase c;
  c.name = fmt::format("cross_attention.{}_m{}", s.name(), s.memory_length);
  if (rows_per_memory > 1) c.name += fmt::format(".beams_{}", rows_per_memory);
  Inputs inputs(c, types);
  const uint64_t memories = s.rows / rows_per_memory;
  const size_t x = inputs.activations({s.rows, s.length, s.width});
  const size_t memory = inputs.activations({memories, s.memory_length, s.width});
  const CrossAttentionPart part = inputs.cross(s);
  const Control control = control_for(Mask::kNone, s);
  const size_t words = inputs.words(control.words.words());
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> t) {
    const CrossAttention layer = cross_attention_of(part, t);
    return std::vector<Tensor>{layer(builder, t[x], layer.project(builder, t[memory]),
                                     view_of(control.cross, t[words], false, rows_per_memory))};
  };
  c.reference = [=](std::span<const CpuTensor> t, const Arithmetic& arithmetic) {
    const BlockReference reference(t, arithmetic);
    const BlockView view{t[words], control.cross, false, rows_per_memory};
    return std::vector<CpuTensor>{
        reference.attention(part, t[x], reference.linear(part.key_value, t[memory]), view)};
  };
  return c;
}

OpCase feed_forward_case(const Sizes& s, KernelTypes types, Activation activation, bool residual) {
  OpCase c;
  c.name = fmt::format("feed_forward.r{}_l{}_d{}_f{}.{}", s.rows, s.length, s.width, s.hidden,
                       conformance::name_of(activation));
  if (residual) c.name += ".residual";
  Inputs inputs(c, types);
  const size_t x = inputs.activations({s.rows, s.length, s.width});
  const size_t y = inputs.activations({s.rows, s.length, s.width});
  const FeedForwardPart part = inputs.feed_forward(s, activation);
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> t) {
    const FeedForward layer = feed_forward_of(part, t);
    return std::vector<Tensor>{residual ? layer(builder, t[x], t[y]) : layer(builder, t[x])};
  };
  c.reference = [=](std::span<const CpuTensor> t, const Arithmetic& arithmetic) {
    const CpuTensor result = BlockReference(t, arithmetic).feed_forward(part, t[x]);
    return std::vector<CpuTensor>{residual ? sum_reference(t[y], result) : result};
  };
  return c;
}

const char* name_of(NormPlacement norms) {
  return norms == NormPlacement::kAfter ? "post_norm" : "pre_norm";
}

OpCase encoder_layer_case(const Sizes& s, KernelTypes types, NormPlacement norms, Mask mask) {
  OpCase c;
  c.name = fmt::format("encoder_layer.{}.{}.{}", s.name(), name_of(norms), name_of(mask));
  Inputs inputs(c, types);
  const size_t x = inputs.activations({s.rows, s.length, s.width});
  const LayerPart part = inputs.layer(s, norms, false);
  const Control control = control_for(mask, s);
  const size_t words = inputs.words(control.words.words());
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> t) {
    return std::vector<Tensor>{
        encoder_layer_of(part, t)(builder, t[x], view_of(control.self, t[words], false))};
  };
  c.reference = [=](std::span<const CpuTensor> t, const Arithmetic& arithmetic) {
    return std::vector<CpuTensor>{
        BlockReference(t, arithmetic).layer(part, t[x], BlockView{t[words], control.self})};
  };
  return c;
}

/// A case of whole sequences, or with a context of one step at a position of a cache.
OpCase decoder_layer_case(Sizes s, KernelTypes types, NormPlacement norms, uint32_t context,
                          uint32_t position, uint32_t beams = 1) {
  OpCase c;
  if (context > 0) s.length = 1;
  c.name = fmt::format("decoder_layer.{}_m{}.{}.", s.name(), s.memory_length, name_of(norms));
  c.name += context == 0 ? "causal" : fmt::format("step_{}_of_{}", position, context);
  if (beams > 1) c.name += fmt::format(".beams_{}", beams);
  Inputs inputs(c, types);
  const size_t x = inputs.activations({s.rows, s.length, s.width});
  const size_t memory = inputs.activations({s.rows / beams, s.memory_length, s.width});
  const size_t cache = context > 0 ? inputs.cache({s.rows, context, s.heads.memory_columns()}) : 0;
  const LayerPart part = inputs.layer(s, norms, true);
  Control control = control_for(Mask::kNone, s);
  const ControlArray<uint32_t> at = control.words.append(std::vector{position});
  if (context > 0) {
    control.self.key_counts = at;
    control.self.key_count_extra = 1;
  }
  if (beams > 1) {
    // Each beam's past cycles through the rows of its item's beams.
    std::vector<uint32_t> ancestry;
    for (uint32_t row = 0; row < s.rows; ++row) {
      for (uint32_t i = 0; i < context; ++i) {
        ancestry.push_back(i >= position ? row : row / beams * beams + (row + i) % beams);
      }
    }
    control.self.ancestry = control.words.append(ancestry);
  }
  const size_t words = inputs.words(control.words.words());
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> t) {
    const DecoderLayer layer = decoder_layer_of(part, t);
    DecoderLayer::Inputs given;
    given.self = view_of(control.self, t[words], context == 0);
    given.cross = view_of(control.cross, t[words], false, beams);
    given.memory = layer.cross_attention.project(builder, t[memory]);
    if (context > 0) given.cache = KeyValueCache{t[cache], t[words], at};
    std::vector<Tensor> outputs = {layer(builder, t[x], given)};
    if (context > 0) outputs.push_back(t[cache]);
    return outputs;
  };
  c.reference = [=](std::span<const CpuTensor> t, const Arithmetic& arithmetic) {
    const BlockReference reference(t, arithmetic);
    const BlockView self{t[words], control.self, context == 0},
        cross{t[words], control.cross, false, beams};
    const CpuTensor projected = reference.linear(part.cross->key_value, t[memory]);
    BlockCache past;
    if (context > 0) past = {t[cache], position};
    std::vector<CpuTensor> outputs = {
        reference.layer(part, t[x], self, context > 0 ? &past : nullptr, &projected, &cross)};
    if (context > 0) outputs.push_back(past.tensor);
    return outputs;
  };
  return c;
}

}  // namespace

std::vector<OpCase> block_cases(KernelTypes types) {
  std::vector<OpCase> cases;
  const Sizes small;
  const Sizes odd = {.rows = 3,
                     .length = 5,
                     .memory_length = 11,
                     .width = 20,
                     .heads = {.heads = 5, .key_size = 4, .value_size = 4},
                     .hidden = 37};
  const Sizes unequal = {.rows = 2,
                         .length = 17,
                         .memory_length = 6,
                         .width = 48,
                         .heads = {.heads = 3, .key_size = 16, .value_size = 24},
                         .hidden = 100};
  const Sizes large = {.rows = 3,
                       .length = 33,
                       .memory_length = 40,
                       .width = 128,
                       .heads = {.heads = 2, .key_size = 64, .value_size = 64},
                       .hidden = 256};
  const Sizes one = {.rows = 1,
                     .length = 1,
                     .memory_length = 3,
                     .width = 64,
                     .heads = {.heads = 8, .key_size = 8, .value_size = 8},
                     .hidden = 192};
  for (const Sizes& s : {small, odd, unequal, large, one}) {
    for (Mask mask : {Mask::kNone, Mask::kPadded, Mask::kCausal, Mask::kHeads}) {
      if (s.length > 1 || mask == Mask::kNone) cases.push_back(self_attention_case(s, types, mask));
    }
    cases.push_back(cross_attention_case(s, types, 1));
    for (NormPlacement norms : {NormPlacement::kAfter, NormPlacement::kBefore}) {
      cases.push_back(encoder_layer_case(s, types, norms, Mask::kNone));
      if (s.length > 1) cases.push_back(encoder_layer_case(s, types, norms, Mask::kPadded));
      cases.push_back(decoder_layer_case(s, types, norms, 0, 0));
      cases.push_back(decoder_layer_case(s, types, norms, 12, 0));
      cases.push_back(decoder_layer_case(s, types, norms, 12, 7));
      cases.push_back(decoder_layer_case(s, types, norms, 33, 32));
    }
    for (Activation activation :
         {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh, Activation::kSilu}) {
      cases.push_back(feed_forward_case(s, types, activation, false));
    }
    cases.push_back(feed_forward_case(s, types, Activation::kRelu, true));
  }
  Sizes beams = small;
  beams.rows = 8;
  cases.push_back(cross_attention_case(beams, types, 4));
  for (NormPlacement norms : {NormPlacement::kAfter, NormPlacement::kBefore}) {
    cases.push_back(decoder_layer_case(beams, types, norms, 20, 9, 4));
  }
  for (OpCase& c : cases) {
    c.must_pass = c.name.find("_d32_") != std::string::npos;
    c.reference = [definition = c.reference, types](std::span<const CpuTensor> inputs,
                                                    const Arithmetic& arithmetic) {
      std::vector<CpuTensor> outputs = definition(inputs, arithmetic);
      // f16 occurs in the cache and in matrix units.
      cap_bounds(outputs, arithmetic.half_operands || types.weight == DataType::kF16 ? 2e-2 : 1e-3);
      return outputs;
    };
  }
  return cases;
}

}  // namespace mulciber::conformance
