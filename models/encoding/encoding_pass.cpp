#include "models/encoding/encoding_pass.h"

#include <numeric>

#include "models/core/vector_cosines.h"
#include "ops/elementwise.h"
#include "runtime/buffer_part.h"
#include "runtime/recorder.h"

namespace mulciber {

Tensor encoder_output(ProgramBuilder& builder, const TextEncoderNetwork& network,
                      EncoderOutput output, const Tensor& states, const Tensor& control,
                      const TextEncoderControl& layout) {
  const auto pooled = [&](EncoderPooling pooling) {
    return network.dense(builder, network.pool(builder, states, pooling, control, layout));
  };
  switch (output) {
    case EncoderOutput::kFirst: return pooled(EncoderPooling::kFirst);
    case EncoderOutput::kMean: return pooled(EncoderPooling::kMean);
    case EncoderOutput::kLast: return pooled(EncoderPooling::kLast);
    case EncoderOutput::kMax: return pooled(EncoderPooling::kMax);
    case EncoderOutput::kMeanSqrtLength: return pooled(EncoderPooling::kMeanSqrtLength);
    case EncoderOutput::kWeightedMean: return pooled(EncoderPooling::kWeightedMean);
    case EncoderOutput::kPooler:
      return network.dense(builder, network.pooler_output(builder, states));
    case EncoderOutput::kLogits: return network.logits(builder, states, control, layout);
    case EncoderOutput::kSpans: return network.spans(builder, states);
    case EncoderOutput::kStates:
      return states.type == DataType::kF32 ? states : convert(builder, states, DataType::kF32);
  }
  return states;
}

namespace {

struct EncodedTensors {
  Tensor vector, states;
};

EncodedTensors add_pass(ProgramBuilder& builder, const TextEncoderNetwork& network,
                        const TextEncoderControl& layout, const Tensor& control,
                        const Tensor* table, EncoderOutput output, bool normalized) {
  const Tensor states = network.states(builder, control, layout, nullptr, table);
  const auto scope = builder.layer("output");
  EncodedTensors kept;
  kept.vector = encoder_output(builder, network, output, states, control, layout);
  if (normalized) kept.vector = unit_length(builder, kept.vector);
  builder.keep(kept.vector);
  kept.states = states.type == DataType::kF32 ? states : convert(builder, states, DataType::kF32);
  builder.keep(kept.states);
  return kept;
}

}  // namespace

std::vector<PipelineKey> EncodingPass::pipelines(const Capabilities& device,
                                                 const TextEncoderNetwork& network, uint32_t length,
                                                 EncoderOutput output, bool normalized,
                                                 bool from_embeddings) {
  const TextEncoderControl layout = network.plan_control(1, length);
  const Tensor control = planned_tensor({layout.words}, DataType::kU32);
  const Tensor table = planned_tensor({length, network.embedding_columns()});
  ProgramBuilder builder(device, "plan");
  add_pass(builder, network, layout, control, from_embeddings ? &table : nullptr, output,
           normalized);
  std::vector<PipelineKey> keys;
  for (const Node& node : builder.nodes()) keys.push_back(pipeline_key(node, device));
  return keys;
}

EncodingPass::EncodingPass(Device& device, const TextEncoderNetwork& network,
                           const EncodingStart& start, uint32_t length)
    : layout_(network.plan_control(1, length)),
      tokens_(start.tokens),
      embeddings_(start.embeddings) {
  control_ = device.memory().allocate(uint64_t{layout_.words} * sizeof(uint32_t),
                                      MemoryUsage::kActivations);
  words_ = network.initial_words(layout_);
  std::optional<Tensor> table;
  if (embeddings_) {
    const Shape shape = {length, network.embedding_columns()};
    table_ = device.memory().allocate(shape.elements() * sizeof(float), MemoryUsage::kActivations);
    table = table_.tensor(shape, DataType::kF32);
    // No token is padding, and token i reads row i of the given embeddings.
    std::vector<uint32_t> ids(tokens_, network.no_padding());
    network.set_row(words_, layout_, 0, ids, std::vector<uint32_t>(tokens_), tokens_);
    ids.resize(length);
    std::iota(ids.begin(), ids.end(), 0);
    words_.set(layout_.tokens, ids);
  } else {
    network.set_row(words_, layout_, 0, start.input.ids, start.input.types, tokens_);
  }
  const Tensor control = control_.tensor({layout_.words}, DataType::kU32);
  ProgramBuilder builder(device, "encode");
  const EncodedTensors kept = add_pass(builder, network, layout_, control,
                                       table ? &*table : nullptr, start.output, start.normalized);
  vector_ = kept.vector;
  states_ = kept.states;
  program_ = builder.build();
  copy_ = device.memory().allocate(vector_.bytes(), MemoryUsage::kReadback);
}

bool EncodingPass::next(Stage& stage) {
  if (given_ == stages()) return false;
  const bool first = ++given_ == 1;
  if (first) stage.update(control_.view(), words_.words());
  if (first && embeddings_) {
    BufferView to = table_.view();
    to.size = embeddings_->size;
    stage.copies.push_back({*embeddings_, to});
    // The remaining rows are zeros, because uninitialized memory could hold NaN.
    const uint64_t rest = table_.view().size - to.size;
    if (rest > 0)
      stage.update(part_of(table_.view(), to.size, rest),
                   std::vector<uint32_t>(rest / sizeof(uint32_t)));
    return true;
  }
  stage.program = &*program_;
  BufferView from = program_->view(vector_);
  from.size = vector_.bytes();
  stage.copies.push_back({from, copy_.view()});
  return true;
}

PaddedRows EncodingPass::vector() const {
  const auto columns = static_cast<uint32_t>(vector_.shape.columns());
  return {program_->view(vector_), 1, columns, columns};
}

PaddedRows EncodingPass::states() const {
  const auto columns = static_cast<uint32_t>(states_.shape.columns());
  return {program_->view(states_), tokens_, columns, columns};
}

std::vector<float> EncodingPass::values() const {
  const auto* from = reinterpret_cast<const float*>(copy_.view().mapped);
  return {from, from + vector_.shape.elements()};
}

}  // namespace mulciber
