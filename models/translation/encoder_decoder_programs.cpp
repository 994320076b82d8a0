#include "models/translation/encoder_decoder_programs.h"

#include <bit>

#include <fmt/format.h>

#include "models/generation/decoding.h"
#include "mulciber/error.h"
#include "ops/elementwise.h"
#include "runtime/recorder.h"

namespace mulciber {
namespace {

// The logit of an id that must not be chosen: its exponential is 0 beside any other logit, and sums
// stay finite.
constexpr float kBannedLogit = -1e30f;

/// The output product, in f32 whatever the activations are, because choices depend on small
/// differences.
Tensor logits_of(ProgramBuilder& builder, const Linear& output, const Tensor& x,
                 bool padded = false) {
  const Tensor wide = x.type == DataType::kF32 ? x : convert(builder, x, DataType::kF32);
  return padded ? output.padded(builder, wide) : output(builder, wide);  // (..., vocabulary)
}

/// Adds a step of a search. output_bias: replaces the network's own.
void add_step(ProgramBuilder& builder, const EncoderDecoderNetwork& network, const SearchView& view,
              const std::optional<Tensor>& output_bias, const Tensor& progress) {
  const auto scope = builder.scope("decoder");
  const Tensor x = network.step(builder, view);

  const auto choice = builder.layer("choice");
  Linear output = network.output;
  if (output_bias) output.bias = output_bias;
  const SearchShape& shape = view.shape;
  const Tensor logits = logits_of(builder, output, x, true);
  const Tensor candidates =
      top_k(builder, logits.reshaped({shape.rows(), logits.shape.columns()}),
            candidates_per_row(shape.beams, shape.room.ends, network.target_vocabulary),
            view.control, view.beam.rules(), network.target_vocabulary);
  beam_step(builder, candidates, view.control, view.beam, progress);
}

/// Plans the control layout of a search step, without a program.
SearchStep plan_step(const EncoderDecoderNetwork& network, const SearchShape& shape) {
  SearchStep step;
  ControlLayout control;
  step.shape = shape;
  step.layout = plan_source(control, network, shape.batch, shape.source_length);
  step.beam = plan_beam_state(control, shape.batch, shape.beams, shape.context, shape.room);
  step.words = control.words();
  return step;
}

void write_head_masks(ControlWords& control, const ControlArray<float>& to,
                      std::span<const float> factors, const char* name) {
  if (!factors.empty() && factors.size() != to.count) {
    throw ModelError(fmt::format("{} head mask", name),
                     fmt::format("has {} factors, the model has {} heads in all its layers",
                                 factors.size(), to.count),
                     "");
  }
  control.fill(to, 1.0f);
  control.set(to, factors);
}

}  // namespace

std::vector<PipelineKey> search_pipelines(const Capabilities& device,
                                          const EncoderDecoderNetwork& network,
                                          const SearchShape& shape) {
  const SearchStep planned = plan_step(network, shape);
  std::vector<Tensor> state;
  for (const StateTensor& tensor : network.state_tensors(shape))
    state.push_back(planned_tensor(tensor.shape, tensor.type));
  const Tensor control = planned_tensor({planned.words}, DataType::kU32);
  const SearchView view = {shape, planned.layout, planned.beam, control, state};
  std::optional<Tensor> output_bias;
  if (shape.masked_output)
    output_bias = planned_tensor({network.target_vocabulary}, DataType::kF32);
  ProgramBuilder encode(device, "plan"), step(device, "plan");
  network.encode(encode, view);
  add_step(step, network, view, output_bias, planned_tensor({1}, DataType::kU32));
  std::vector<PipelineKey> keys;
  for (const ProgramBuilder* builder : {&encode, &step}) {
    for (const Node& node : builder->nodes()) keys.push_back(pipeline_key(node, device));
  }
  return keys;
}

SourceControl plan_source(ControlLayout& control, const EncoderDecoderNetwork& network,
                          uint32_t batch, uint32_t source_length) {
  const HeadCounts heads = network.masked_heads();
  SourceControl layout;
  layout.source = control.add<uint32_t>(uint64_t{batch} * source_length);
  layout.lengths = control.add<uint32_t>(batch);
  layout.encoder_masks = control.add<float>(heads.encoder);
  layout.decoder_masks = control.add<float>(heads.decoder);
  layout.cross_masks = control.add<float>(heads.cross);
  if (network.encoder_bias.span > 0)
    layout.encoder_bias = control.add<float>(network.encoder_bias.values.size());
  if (network.decoder_bias.span > 0)
    layout.decoder_bias = control.add<float>(network.decoder_bias.values.size());
  return layout;
}

void write_heads(ControlWords& control, const SourceControl& layout,
                 const EncoderDecoderNetwork& network, const HeadMasks& factors) {
  write_head_masks(control, layout.encoder_masks, factors.encoder, "encoder");
  write_head_masks(control, layout.decoder_masks, factors.decoder, "decoder");
  write_head_masks(control, layout.cross_masks, factors.cross, "cross");
  if (layout.encoder_bias) control.set(*layout.encoder_bias, network.encoder_bias.values);
  if (layout.decoder_bias) control.set(*layout.decoder_bias, network.decoder_bias.values);
}

SearchPrograms::SearchPrograms(Device& device, const EncoderDecoderNetwork& network,
                               const SearchShape& shape)
    : all(plan_step(network, shape)) {
  control =
      device.memory().allocate(uint64_t{all.words} * sizeof(uint32_t), MemoryUsage::kActivations);
  progress = device.memory().allocate(sizeof(uint32_t), MemoryUsage::kReadback);
  if (shape.masked_output) {
    const uint64_t bytes = uint64_t{network.target_vocabulary} * sizeof(float);
    output_bias = device.memory().allocate(bytes, MemoryUsage::kActivations);
    output_bias_values.assign(network.target_vocabulary, 0.0f);
    if (network.output.bias) {
      BufferView bias = network.output.bias->view;
      bias.size = bytes;
      output_bias_values = download_as<float>(device, bias);
    }
  }
  for (const StateTensor& tensor : network.state_tensors(shape))
    kept.push_back(device.memory().allocate(tensor.shape.elements() * size_of(tensor.type),
                                            MemoryUsage::kActivations));

  ProgramBuilder step(device, "decode step");
  add_step_to(step, network, all);
  arena = device.memory().allocate(step.plan().arena_bytes, MemoryUsage::kActivations);
  all.program = step.build(arena.view());
}

Program& SearchPrograms::encode_whole(Device& device, const EncoderDecoderNetwork& network) {
  if (encode) return *encode;
  const std::vector<Tensor> state = state_of(network, all.shape);
  ProgramBuilder builder(device, "encode");
  network.encode(builder, {all.shape, all.layout, all.beam,
                           control.tensor({all.words}, DataType::kU32), state});
  return encode.emplace(builder.build());
}

std::vector<Tensor> SearchPrograms::state_of(const EncoderDecoderNetwork& network,
                                             const SearchShape& shape) const {
  std::vector<Tensor> state;
  for (const StateTensor& tensor : network.state_tensors(shape))
    state.push_back(kept[state.size()].tensor(tensor.shape, tensor.type));
  return state;
}

void SearchPrograms::add_step_to(ProgramBuilder& builder, const EncoderDecoderNetwork& network,
                                 const SearchStep& step) const {
  std::optional<Tensor> bias;
  if (step.shape.masked_output)
    bias = output_bias.tensor({network.target_vocabulary}, DataType::kF32);
  const std::vector<Tensor> state = state_of(network, step.shape);
  add_step(
      builder, network,
      {step.shape, step.layout, step.beam, control.tensor({step.words}, DataType::kU32), state},
      bias, progress.tensor({1}, DataType::kU32));
}

SearchStep& SearchPrograms::step_of(Device& device, const EncoderDecoderNetwork& network,
                                    uint32_t items) {
  if (items == all.shape.batch) return all;
  if (const auto found = fewer.find(items); found != fewer.end()) return found->second;
  SearchShape shape = all.shape;
  shape.batch = items;
  SearchStep step = plan_step(network, shape);
  ProgramBuilder builder(device, "decode step");
  builder.select_as(shape.batch, all.shape.batch);
  add_step_to(builder, network, step);
  const bool fits = builder.plan().arena_bytes <= arena.size();
  step.program = builder.build(fits ? arena.view() : BufferView{});
  return fewer.emplace(items, std::move(step)).first->second;
}

std::vector<uint32_t> SearchPrograms::output_bias_words(std::span<const uint32_t> banned) const {
  std::vector<uint32_t> words;
  for (const float value : output_bias_values) words.push_back(std::bit_cast<uint32_t>(value));
  for (const uint32_t id : banned) words[id] = std::bit_cast<uint32_t>(kBannedLogit);
  return words;
}

PassProgram::PassProgram(Device& device, const EncoderDecoderNetwork& network,
                         const PassShape& wanted)
    : shape(wanted) {
  ControlLayout all;
  layout = plan_source(all, network, shape.batch, shape.source_length);
  const uint32_t target_ids = shape.batch * shape.target_length;
  target = all.add<uint32_t>(target_ids);
  if (shape.scores) scores = TargetScores(all, target_ids, network.target_vocabulary);
  words = all.words();
  control = device.memory().allocate(uint64_t{words} * sizeof(uint32_t), MemoryUsage::kActivations);
  const Tensor control_tensor = control.tensor({words}, DataType::kU32);
  trace.hidden_states = shape.hidden_states;
  trace.attentions = shape.attentions;

  ProgramBuilder builder(device, "forward");
  const Tensor x = network.pass(builder, {shape, layout, control_tensor, target}, trace);
  if (shape.logits || shape.scores) {
    const auto scope = builder.scope("decoder");
    const auto name = builder.layer("output");
    const Tensor logits = logits_of(builder, network.output, x);
    if (shape.logits) trace.keep(builder, "logits", logits);
    if (shape.scores)
      scores.add(builder, logits.reshaped({target_ids, network.target_vocabulary}), control_tensor);
  }
  program = builder.build();
}

Trace plan_pass(ProgramBuilder& builder, const EncoderDecoderNetwork& network,
                const PassShape& shape) {
  ControlLayout all;
  const SourceControl layout = plan_source(all, network, shape.batch, shape.source_length);
  const auto target = all.add<uint32_t>(shape.batch * shape.target_length);
  const Tensor control = planned_tensor({all.words()}, DataType::kU32);
  Trace trace;
  trace.hidden_states = shape.hidden_states;
  trace.attentions = shape.attentions;
  network.pass(builder, {shape, layout, control, target}, trace);
  return trace;
}

}  // namespace mulciber
