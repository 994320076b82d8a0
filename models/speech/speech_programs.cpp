#include "models/speech/speech_programs.h"

#include <fmt/format.h>

#include "layers/convolution.h"
#include "runtime/transfer.h"

namespace mulciber {

SpeechEncoding::SpeechEncoding(Device& device, const SpeechNetwork& network,
                               const WhisperConfig& config) {
  const Shape input = {config.frames(), 3 * uint64_t{config.mels}};
  windows = device.memory().allocate(input.elements() * sizeof(float), MemoryUsage::kActivations);
  control = device.memory().allocate(sizeof(uint32_t), MemoryUsage::kActivations);
  upload(device, control.view(), std::as_bytes(std::span(&config.positions, 1)));
  const Shape memory = {1, config.positions, network.decoder().memory_columns()};
  for (uint32_t i = 0; i < config.decoder_layers; ++i) {
    kept.push_back(device.memory().allocate(memory.elements() * size_of(network.activations()),
                                            MemoryUsage::kActivations));
    memories.push_back(kept.back().tensor(memory, network.activations()));
  }
  ProgramBuilder builder(device, "encode");
  const StackControl stack = {.tensor = control.tensor({1}, DataType::kU32),
                              .lengths = ControlArray<uint32_t>{0, 1}};
  const Tensor encoded = network.encode(builder, windows.tensor(input, DataType::kF32), stack);
  network.decoder().project(builder, encoded, memories);
  program = builder.build();
}

void SpeechEncoding::write(Device& device, std::span<const float> features, uint32_t mels) const {
  const std::vector<float> unfolded = unfold_by_ones(features, mels);
  upload(device, windows.view(), std::as_bytes(std::span(unfolded)));
}

SpeechPass::SpeechPass(Device& device, const SpeechNetwork& network, const WhisperConfig& config,
                       const Buffer& windows, uint32_t token_count, bool with_attentions)
    : length(token_count), attentions(with_attentions) {
  ControlLayout layout;
  lengths = layout.add<uint32_t>(1);
  tokens = layout.add<uint32_t>(length);
  words = ControlWords(layout.words());
  words.set(lengths, 0, config.positions);
  control = device.memory().allocate(words.bytes().size(), MemoryUsage::kActivations);
  trace.attentions = attentions;
  const Tensor control_tensor = control.tensor({words.size()}, DataType::kU32);
  const StackControl stack = {.tensor = control_tensor, .lengths = lengths};
  ProgramBuilder builder(device, "forward");
  const Tensor input = windows.tensor({config.frames(), 3 * uint64_t{config.mels}}, DataType::kF32);
  const Tensor encoded = network.encode(builder, input, stack, &trace);
  std::vector<Tensor> memories;
  for (const DecoderLayer& layer : network.decoder().stack.layers) {
    const auto name = builder.scope(fmt::format("memory.{}", memories.size()));
    memories.push_back(layer.cross_attention.project(builder, encoded));
  }
  logits = network.decoder().pass(builder,
                                  {.control = control_tensor,
                                   .tokens = tokens,
                                   .rows = 1,
                                   .length = length,
                                   .type = network.activations()},
                                  stack, memories, &trace);
  builder.keep(logits);
  program = builder.build();
}

}  // namespace mulciber
