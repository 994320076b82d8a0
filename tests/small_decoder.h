// The small decoder-only model of tests/data, and its answer to a single prompt.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "models/generation/decoder_model.h"
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

/// The model's greedy continuation of a prompt that runs alone.
inline std::vector<uint32_t> alone(const DecoderModel& model, const std::vector<uint32_t>& prompt,
                                   uint32_t tokens) {
  SequenceBatch batch(shared_device(), model.network(), {1, 96});
  return batch.generate({.prompts = {prompt}, .max_new_tokens = tokens}).rows[0].ids;
}

}  // namespace mulciber::tests
