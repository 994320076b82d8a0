// Passes of a language model over given texts: log probabilities of their tokens, and hidden
// states.
#pragma once

#include <list>
#include <optional>
#include <span>
#include <vector>

#include "layers/trace.h"
#include "models/core/target_scores.h"
#include "models/generation/decoder_programs.h"
#include "mulciber/text_scores.h"

namespace mulciber {

/// What is wanted of each token beside its log probability.
struct ScoreDetails {
  uint32_t likeliest = 0;
  bool ranks = false;
};

/// Has keys and values of its own, beside the network's sequences. A text is read in passes that
/// begin at whole multiples of one length, so that what is computed of a token depends on the
/// tokens before it alone. What a text has in common with the one read before, in whole passes, is
/// not computed again. Not thread-safe; must not outlive device and network.
class TokenScorer {
 public:
  /// context: tokens of the longest text, 1 or more; room: of the cache, where that is more.
  /// longest_pass: tokens. Throws
  /// DeviceError when it does not fit, ModelError when the network's context is less.
  TokenScorer(Device& device, const DecoderNetwork& network, uint32_t context, uint32_t room = 0,
              uint32_t longest_pass = 256);

  uint32_t context() const { return context_; }

  /// From now on, as set_adapters() (models/generation/decoder_programs.h); before: their own
  /// scales.
  void use_adapters(std::vector<float> scales);

  /// log p(ids[i] | ids[0 .. i - 1]) for i from `first` (1 or more) to the end. Natural logarithm.
  /// ids: at most `context`, below the vocabulary. Throws ModelError when they are not, LogitsError
  /// when logits are NaN or infinite.
  std::vector<double> score(std::span<const uint32_t> ids, uint32_t first);
  /// The same with details.
  std::vector<TokenScore> score(std::span<const uint32_t> ids, uint32_t first,
                                const ScoreDetails& details);

  /// Hidden states as transformers counts them: 0 is the embedding, i what layer i - 1 leaves, and
  /// the last what the output product takes. layers: of these, each at most the number of layers.
  /// Result: (layers, tokens, D). Throws as score().
  std::vector<float> states(std::span<const uint32_t> ids, std::span<const uint32_t> layers);

  /// Of all calls so far: tokens that were read, and that another text had read before; seconds of
  /// making programs.
  uint64_t read_tokens() const { return read_tokens_; }
  uint64_t reused_tokens() const { return reused_tokens_; }
  double build_seconds() const { return build_seconds_; }

 private:
  enum class Kept { kNothing, kScores, kLastState, kAllStates };
  struct Pass {
    uint32_t length = 1;
    Kept kept = Kept::kNothing;
    Tensor logits;  // kScores: (length, vocabulary)
    Trace trace;    // of states
    std::optional<Program> program;
  };
  Pass& pass(uint32_t length, Kept kept);
  void check(std::span<const uint32_t> ids) const;
  /// Reads tokens [begin, begin + fed) of `ids` in one pass.
  void run(Pass& pass, std::span<const uint32_t> ids, uint32_t begin, uint32_t fed);
  /// Tokens of `ids`, `most` at most, that need not be computed again.
  uint32_t held(std::span<const uint32_t> ids, uint32_t most);
  /// How many tokens from `begin` on the next pass takes, and how long it is.
  std::pair<uint32_t, uint32_t> next(std::span<const uint32_t> ids, uint32_t begin) const;
  [[noreturn]] void refuse(std::span<const uint32_t> ids, uint32_t tokens);

  Device& device_;
  const DecoderNetwork& network_;
  uint32_t context_ = 0, chunk_ = 1;
  BatchLayout layout_;
  std::vector<TargetScores> targets_;  // by the number of the pass's length
  ControlWords words_;
  Buffer control_;
  std::vector<Buffer> cache_buffers_;
  BatchTensors tensors_;
  std::list<Pass> passes_;
  std::vector<float> adapters_;
  std::vector<uint32_t> held_;  // tokens in the cache, as far as they can serve another text
  uint64_t read_tokens_ = 0, reused_tokens_ = 0;
  double build_seconds_ = 0;
};

}  // namespace mulciber
