// Sequences that grow token by token on the device: where their state stands, and the step from a choice to the
// next token fed.
#pragma once

#include "runtime/program.h"

namespace mulciber {

/// Words of the control tensor; shaders/sequence.h defines each field. Made by plan_sequence_state().
struct SequenceStateLayout {
  uint32_t rows = 1;
  uint32_t capacity = 1;       // tokens the cache has room for
  uint32_t stop_capacity = 0;  // ids that may end a sequence
  uint32_t ring = 1;           // chosen tokens of a row that `progress` holds: later ones take their place
  uint32_t tokens = 0, positions = 0, fed = 0, states = 0, counts = 0, limits = 0;  // (rows) each
  uint32_t steps = 0;
  uint32_t stops = 0;  // count, then ids
  uint32_t end = 0;    // one past the last word

  uint32_t progress_words() const;
  /// Words of progress.
  uint32_t progress_count(uint32_t row) const;
  uint32_t progress_state(uint32_t row) const;
  uint32_t progress_token(uint32_t row, uint32_t number) const;
};
SequenceStateLayout plan_sequence_state(uint32_t first_word, uint32_t rows, uint32_t capacity,
                                        uint32_t stop_capacity, uint32_t ring);

/// Every running row takes its first candidate: the token to be fed next, which `progress` hands on to the
/// host. A row that chose an id of `stops`, or as many tokens as its limit, or whose token has no room in the
/// cache, runs no more; rows that do not run stay as they are.
/// candidates: (rows, k, 2) u32 from top_k; control, progress: u32. Throws ShapeError naming the layer.
void advance_sequences(ProgramBuilder& builder, const Tensor& candidates, const Tensor& control,
                       const SequenceStateLayout& layout, const Tensor& progress);

}  // namespace mulciber
