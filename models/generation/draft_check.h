// Speculative decoding of one sequence: the pass that verifies several draft tokens at once, and
// prompt lookup. Source: Leviathan et al. 2023, arXiv:2211.17192.
#pragma once

#include <span>
#include <vector>

#include "models/generation/sequence_batch.h"
#include "mulciber/text_generator.h"

namespace mulciber {

/// Tokens of a pass of DraftCheck: the one chosen last, and draft tokens behind it.
constexpr uint32_t kCheckedTokens = 8;
static_assert(kCheckedTokens == kMostDraftTokens + 1);

/// Chooses a token behind each token of a pass, in the way of a decode step at that position: with
/// the history up to there, and the random number of that length. Every pass has kCheckedTokens
/// tokens, padding included, so that the kernels, and the choice behind a token, depend neither on
/// how many draft tokens there are nor on which. Not thread-safe. Must not outlive the batch.
class DraftCheck {
 public:
  /// batch: its cache is read and written; it has one row of kCheckedTokens tokens or more.
  /// penalty_window: the largest in the sampling settings of run().
  DraftCheck(Device& device, const DecoderNetwork& network, SequenceBatch& batch,
             uint32_t penalty_window);

  uint32_t penalty_window() const { return window_; }

  struct Request {
    /// The sequence. Its last token is the first that is fed; the batch holds those before it.
    std::span<const uint32_t> ids;
    std::span<const uint32_t> drafted;  // at most kCheckedTokens - 1
    Sampling sampling;
    uint32_t stream = 0;
    std::span<const float> adapters;  // see set_adapters()
  };
  /// The accepted draft tokens and one token more: the choices behind ids.back() and behind each
  /// draft token, up to the first that differs from the draft. The batch then holds all but the
  /// last. Throws LogitsError when logits are NaN or infinite: the batch is empty then.
  std::vector<uint32_t> run(const Request& request);

 private:
  static BatchLayout plan(const DecoderNetwork& network, const BatchShape& shape, uint32_t window,
                          SampleStateLayout& choices);

  SequenceBatch& batch_;
  uint32_t window_;
  SampleStateLayout choices_;  // a row for each token of a pass
  DecoderState state_;
  Tensor progress_;
  Buffer progress_buffer_;
  std::optional<Program> program_;
};

/// Prompt lookup: the `count` tokens behind the latest earlier occurrence of the last `longest`
/// tokens, or else of fewer of them, down to two (or `longest`). Where the text ends before so
/// many, its tokens from there on are repeated. Empty where nothing occurred before. Source: Saxena
/// 2023, prompt lookup decoding.
std::vector<uint32_t> prompt_lookup(std::span<const uint32_t> ids, uint32_t longest,
                                    uint32_t count);

}  // namespace mulciber
