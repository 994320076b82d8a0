// The state of one SequenceBatch::generate().
#pragma once

#include <exception>

#include "base/clock.h"
#include "models/generation/sequence_batch.h"
#include "mulciber/error.h"
#include "runtime/buffer_part.h"
#include "runtime/transfer.h"

namespace mulciber {

struct SequenceBatch::Run {
  const SequenceRequest& request;
  SequenceResult result;
  std::vector<size_t> taken;      // tokens of each prompt for which passes were made
  std::vector<uint32_t> states;   // SAMPLE_* of each row, once its prompt is prefilled
  std::vector<uint32_t> first;    // number of the first id that each row chooses
  std::vector<uint32_t> emitted;  // ids of each row that the caller has got
  Clock::time_point start = Clock::now();
  bool cancelled = false;
  std::vector<bool> new_masks;       // rows whose masks are not on the device yet
  std::optional<Uploader> uploader;  // for steps by a grammar; keeps its memory between them
  std::exception_ptr refused;        // a grammar's error, which ended the run; finish() throws it

  explicit Run(const SequenceRequest& wanted) : request(wanted) {}
  bool is_cancelled() {
    cancelled = cancelled || (request.cancel && request.cancel->load());
    return cancelled;
  }
  CompletionGrammar* grammar(uint32_t row) const {
    return request.grammars.empty() ? nullptr : request.grammars[row];
  }
  /// Makes a call that may throw the ModelError of a grammar. The run ends then.
  template <typename Call>
  void by_grammar(const Call& call) {
    try {
      call();
    } catch (const ModelError&) {
      refused = std::current_exception();
      cancelled = true;
    }
  }
  /// Whether a row's prompt is prefilled, and the row chooses ids behind it.
  bool chooses(uint32_t row) const {
    return taken[row] == request.prompts[row].size() && request.max_new_tokens > 0;
  }
};

/// Length of the shortest pass that takes `tokens`, or of the longest within `longest` and `room`.
inline uint32_t pass_length(uint32_t tokens, uint32_t longest, uint32_t room) {
  uint32_t best = 1;
  for (uint32_t length : kPassLengths) {
    if (length > longest || length > room) break;
    best = length;
    if (length >= tokens) break;
  }
  return best;
}

/// A prefill pass. fed: tokens of each row in it.
struct SequenceBatch::Pass {
  DecoderPass shape;
  std::vector<uint32_t> fed;
  std::optional<BufferView> rows;  // the caller's, for shape.from_rows
  std::vector<float> given;        // embeddings, for shape.mixed
};

}  // namespace mulciber
