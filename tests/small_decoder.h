// The small decoder-only model of tests/data, and its answer to a single prompt.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "models/generation/decoder_model.h"
#include "models/generation/sequence_decoding.h"
#include "tests/device.h"
#include "tests/support.h"

namespace mulciber::tests {

inline std::filesystem::path small_decoder() { return data_dir() / "gemma3"; }

inline std::unique_ptr<DecoderModel> open_decoder(const std::filesystem::path& path,
                                                  const ModelOptions& options = {}) {
  const Checkpoint checkpoint(path);
  return std::make_unique<DecoderModel>(shared_device(), checkpoint,
                                        read_decoder_config(checkpoint), options);
}

/// Ids that stand for a text of `length` tokens.
inline std::vector<uint32_t> prompt_of(uint32_t length, uint32_t seed) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < length; ++i) ids.push_back((seed + 37 * i + i * i) % 400 + 5);
  return ids;
}

/// Slots of a network on the tests' device.
inline SequenceSlots slots_of(const DecoderNetwork& network, uint32_t slots, uint32_t context) {
  return {shared_device(), network,
          conversation_slots(shared_device().capabilities(), network, slots, context)};
}

/// The greedy continuation of a prompt in a free slot, which is free again then.
inline std::vector<uint32_t> greedy(SequenceSlots& slots, const std::vector<uint32_t>& prompt,
                                    uint32_t tokens) {
  std::vector<uint32_t> ids =
      decode_sequence(slots, 0, {.prompt = prompt, .exact = false}, {.max_new_tokens = tokens}).ids;
  slots.end(0, true);
  return ids;
}

/// The model's greedy continuation of a prompt that runs alone.
inline std::vector<uint32_t> alone(const DecoderModel& model, const std::vector<uint32_t>& prompt,
                                   uint32_t tokens) {
  SequenceSlots slots = slots_of(model.network(), 1, 96);
  return greedy(slots, prompt, tokens);
}

}  // namespace mulciber::tests
