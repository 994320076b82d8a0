// Choosing tokens on the device: the best continuations of each row, and one step of beam search.
#pragma once

#include "runtime/program.h"

namespace mulciber {

/// Rules on the next token, standing in the control tensor so that they need no new recording.
struct TokenRules {
  uint32_t banned_offset = 0;    // control: [count, id, id, ...], ids whose log probability becomes -inf
  uint32_t banned_capacity = 0;  // ids there is room for
  uint32_t position_offset = 0;  // control: index of the token being chosen counts from here
  uint32_t forced_offset = 0;    // control: [position, id]: at that position only `id`, with log probability 0;
                                 // position 0xffffffff: never
};

/// log-softmax over each row, then the rules, then the k best. Order: larger value first, then smaller id.
/// logits: (rows, vocabulary) f32; result: (rows, k, 2) u32: bits of the f32 log probability, id.
/// k up to 64 and up to the vocabulary; k = 1 is arg max. Where fewer than k ids are left after the rules
/// the rest have value -inf.
Tensor top_k(ProgramBuilder& builder, const Tensor& logits, uint32_t k, const Tensor& control,
             const TokenRules& rules);

/// Where beam search keeps its state in the control tensor, in words; see shaders/beam.h, which defines each
/// field. Made by plan_beam_state().
struct BeamStateLayout {
  uint32_t batch = 1, beams = 1, capacity = 1;  // capacity: most tokens of a hypothesis, start token included
  uint32_t position = 0;       // index of the token to be fed next
  uint32_t unfinished = 0;     // items still searching
  uint32_t settings = 0;       // eos, pad, max length, length penalty, early stopping (beam.h: BEAM_*)
  uint32_t tokens = 0;         // (batch * beams): token to feed next
  uint32_t scores = 0;         // (batch * beams): running sums of log probabilities, f32
  uint32_t ancestry = 0;       // (batch * beams, capacity): row of the cache that holds position t
  uint32_t history_tokens = 0; // (capacity, batch * beams)
  uint32_t history_parents = 0;
  uint32_t finished = 0;       // (batch, beams, 4): score f32, length, last row, step
  uint32_t item_state = 0;     // (batch, 4): done flag, number finished, worst finished score f32, spare
  uint32_t banned = 0, banned_capacity = 0;
  uint32_t forced = 0;         // position, id
  uint32_t words = 0;          // total
};
BeamStateLayout plan_beam_state(uint32_t first_word, uint32_t batch, uint32_t beams, uint32_t capacity,
                                uint32_t banned_capacity);

/// One step for every item of the batch, as transformers' generate does it: of the 2 * beams best
/// continuations over all beams, those that end in eos and rank among the first `beams` become finished
/// results, the best `beams` others go on; early stopping and length penalty from the settings; at the last
/// position the running ones become results too. With beams = 1 this is greedy search.
/// Updates tokens, scores, ancestry, history, position and unfinished in `control`, and writes
/// {position, unfinished} to `progress`: (2) u32, which may be host memory.
/// candidates: (batch * beams, min(2 * beams, vocabulary), 2) u32 from top_k.
void beam_step(ProgramBuilder& builder, const Tensor& candidates, const Tensor& control,
               const BeamStateLayout& layout, const Tensor& progress);

}  // namespace mulciber
