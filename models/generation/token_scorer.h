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

/// Details of each token besides its log probability.
struct ScoreDetails {
  uint32_t likeliest = 0;
  bool ranks = false;
};

/// Has a KV cache of its own, beside the network's sequences. A text is read in passes that begin
/// at whole multiples of one length, so that the results of a token depend on the tokens before it
/// alone. The prefix that a text shares with the one read before, in whole passes, is not computed
/// again. Not thread-safe; must not outlive device and network.
class TokenScorer {
 public:
  /// context: tokens of the longest text, 1 or more; room: tokens of the cache, where that is more.
  /// longest_pass: tokens. Throws DeviceError when the cache does not fit, ModelError when the
  /// network's context is less.
  TokenScorer(Device& device, const DecoderNetwork& network, uint32_t context, uint32_t room = 0,
              uint32_t longest_pass = 256);

  uint32_t context() const { return context_; }

  /// Sets the adapter scales from now on, as set_adapters() (models/generation/decoder_programs.h)
  /// takes them. Until then the adapters have their own scales.
  void use_adapters(std::vector<float> scales);

  /// log p(ids[i] | ids[0 .. i - 1]) for i from `first` (1 or more) to the end. Natural logarithm.
  /// ids: at most `context`, below the vocabulary. Throws ModelError when they are not, LogitsError
  /// when logits are NaN or infinite.
  std::vector<double> score(std::span<const uint32_t> ids, uint32_t first);
  /// Scores tokens with details.
  std::vector<TokenScore> score(std::span<const uint32_t> ids, uint32_t first,
                                const ScoreDetails& details);

  /// Hidden states, numbered as in transformers: 0 is the embedding, i the output of layer i - 1,
  /// and the last the input of the output product. layers: numbers of states, each at most the
  /// number of layers. Result: (layers, tokens, D). Throws as score().
  std::vector<float> states(std::span<const uint32_t> ids, std::span<const uint32_t> layers);

  /// Totals of all calls: tokens that were computed, tokens that the text before had in common, and
  /// seconds in which programs were built.
  uint64_t read_tokens() const { return read_tokens_; }
  uint64_t reused_tokens() const { return reused_tokens_; }
  double build_seconds() const { return build_seconds_; }

 private:
  enum class Kept { kNothing, kScores, kLastState, kAllStates };
  /// The layout of control, with the targets of each pass behind it.
  static BatchLayout plan(const DecoderNetwork& network, uint32_t room, uint32_t chunk,
                          std::vector<TargetScores>& targets);
  struct Pass {
    uint32_t length = 1;
    Kept kept = Kept::kNothing;
    Tensor logits;  // kScores: (length, vocabulary)
    Trace trace;    // hidden states
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

  uint32_t context_ = 0, chunk_ = 1;
  std::vector<TargetScores> targets_;  // one for each length of a pass
  DecoderState state_;
  std::list<Pass> passes_;
  std::vector<float> adapters_;
  std::vector<uint32_t> held_;  // tokens in the cache, as far as they can serve another text
  uint64_t read_tokens_ = 0, reused_tokens_ = 0;
  double build_seconds_ = 0;
};

}  // namespace mulciber
