// Speculative decoding: tokens that are proposed, and the pass over a sequence that checks several
// at once. Source: Leviathan et al. 2023, arXiv:2211.17192.
#pragma once

#include <span>
#include <vector>

#include "models/generation/sequence_batch.h"
#include "mulciber/text_generator.h"

namespace mulciber {

/// Tokens of a pass of ProposalCheck: the one chosen last, and what is proposed behind it.
constexpr uint32_t kCheckedTokens = 8;
static_assert(kCheckedTokens == kMostProposals + 1);

/// Chooses a token behind each token of a pass, every one as a step of decoding would at its place:
/// with the history up to there, and the random number of its length. Every pass has
/// kCheckedTokens, those that are not given filled up, so that the kernels, and what is chosen
/// behind a token, depend neither on how many are proposed nor on which. Not thread-safe. Must not
/// outlive the batch.
class ProposalCheck {
 public:
  /// batch: whose keys and values are read and written, with one row of kCheckedTokens tokens or
  /// more. penalty_window: of the sampling that run() is given, at most.
  ProposalCheck(Device& device, const DecoderNetwork& network, SequenceBatch& batch,
                uint32_t penalty_window);

  uint32_t penalty_window() const { return window_; }

  struct Request {
    /// The sequence, its last token being the first that is fed; those before it are held by the
    /// batch.
    std::span<const uint32_t> ids;
    std::span<const uint32_t> proposed;  // at most kCheckedTokens - 1
    Sampling sampling;
    uint32_t stream = 0;
    std::span<const float> adapters;  // as set_adapters()
  };
  /// What is chosen behind ids.back() and behind each proposed token, as far as those are chosen
  /// too: the proposals that were taken, and one token more. The batch then holds all but the last.
  /// Throws LogitsError when logits are NaN or infinite: the batch is empty then.
  std::vector<uint32_t> run(const Request& request);

 private:
  Device& device_;
  const DecoderNetwork& network_;
  SequenceBatch& batch_;
  uint32_t window_;
  BatchLayout layout_;
  SampleStateLayout choices_;  // a row for each token of a pass
  ControlWords words_;
  BatchTensors tensors_;
  Buffer control_, progress_;
  std::optional<Program> program_;
};

/// Tokens that may follow: those behind the latest place before the end where the last `longest`
/// tokens stood already, or else fewer of them, down to two (or `longest`). What follows there to
/// the end is repeated. count: at most. Source: Saxena 2023, prompt lookup decoding.
std::vector<uint32_t> look_up(std::span<const uint32_t> ids, uint32_t longest, uint32_t count);

}  // namespace mulciber
