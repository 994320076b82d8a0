// How surprised a language model is by a text: log probabilities of its tokens, and the perplexity
// that people compare.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "models/decoding/decoder_programs.h"
#include "models/decoding/target_scores.h"

namespace mulciber {

/// Log probabilities of given tokens. Not thread-safe; must not outlive device and network.
class TokenScorer {
 public:
  /// context: tokens of a text, 2 or more. Throws DeviceError when it does not fit.
  TokenScorer(Device& device, const DecoderNetwork& network, uint32_t context);

  /// log p(ids[i] | ids[0 .. i - 1]) for i from `first` (1 or more) to the end. Natural logarithm.
  /// ids: `context` of them, below the vocabulary. Throws LogitsError when logits are NaN or
  /// infinite.
  std::vector<double> score(std::span<const uint32_t> ids, uint32_t first);

 private:
  struct Pass {
    uint32_t length = 1;
    Program program;
  };
  /// Runs tokens [begin, begin + length of the pass) of `ids`.
  void run(Pass& pass, std::span<const uint32_t> ids, uint32_t begin);

  Device& device_;
  const DecoderNetwork& network_;
  uint32_t context_ = 0;
  BatchLayout layout_;
  TargetScores targets_;  // of the second program
  ControlWords words_;
  Buffer control_;
  std::vector<Buffer> cache_buffers_;
  BatchTensors tensors_;
  std::optional<Pass> taken_in_, scored_;  // without and with logits
};

struct Perplexity {
  double value = 0, error = 0;  // exp of the mean, and its standard error
  uint64_t tokens = 0;          // that were scored
  uint32_t chunks = 0;
};

/// As llama.cpp's llama-perplexity measures: the ids are cut into chunks of `context`, what is left
/// over is not looked at; in each chunk the tokens behind the first half are scored on what stands
/// before them in the chunk. With `bos` it takes the place of every chunk's first id. most_chunks:
/// 0: all. progress returns false to end early. Throws ModelError when the ids do not fill two
/// chunks, as there.
Perplexity perplexity(
    TokenScorer& scorer, std::span<const uint32_t> ids, uint32_t context,
    std::optional<uint32_t> bos, uint32_t most_chunks,
    const std::function<bool(uint32_t done, uint32_t all, double value)>& progress);

}  // namespace mulciber
