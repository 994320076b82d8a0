// Beam search: its parameters, and the state that host and device share.
//
// The state stands in the control tensor, in words; BeamStateLayout (ops/search.h) says
// where each field begins. Row = item * beams + beam. Position 0 of a hypothesis is the start
// token.
//
//   position         index of the token to be fed next
//   unfinished       items still searching
//   settings         BEAM_SETTING_WORDS words, listed below
//   tokens           per row: the token to be fed next
//   scores           per row: sum of the log probabilities of the tokens chosen so far, f32
//   ancestry         per row and position t: the row of the key-value cache that holds t; from
//                    `position` on its own row
//   history_tokens   per position t and row: the token chosen for t by the hypothesis then there
//   history_parents  per position t and row: the row of that hypothesis at t - 1
//   finished         per item, best first: BEAM_FINISHED_WORDS words each, listed below
//   item_state       per item: BEAM_ITEM_WORDS words, listed below
//
// A finished hypothesis is read backwards: from (step, row), token by token, through
// history_parents to position 0. Where its length is above `step`, it ended in eos, which stands in
// no history.
#ifndef MULCIBER_SHADERS_BEAM_H
#define MULCIBER_SHADERS_BEAM_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Words of `settings`.
#define BEAM_EOS 0             // id that ends a hypothesis; 0xffffffff: none
#define BEAM_PAD 1             // id fed by items that are done
#define BEAM_LAST_POSITION 2   // the longest hypothesis has its last token here
#define BEAM_LENGTH_PENALTY 3  // f32: score = sum / length ^ penalty
#define BEAM_EARLY_STOPPING 4  // BEAM_STOP_*
#define BEAM_SETTING_WORDS 8

// When an item with as many finished hypotheses as beams is done.
// when the best running sum, at its present length, beats none of them
#define BEAM_STOP_HEURISTIC 0
#define BEAM_STOP_EARLY 1  // at once
// when the best running sum, at any length, beats none of them
#define BEAM_STOP_NEVER 2

// Words of each entry of `finished`.
#define BEAM_FINISHED_SCORE 0   // f32
#define BEAM_FINISHED_LENGTH 1  // ids after the start token, eos included
#define BEAM_FINISHED_ROW 2
#define BEAM_FINISHED_STEP 3
#define BEAM_FINISHED_WORDS 4

// Words of each entry of `item_state`.
#define BEAM_ITEM_DONE 0   // BEAM_SEARCHES, BEAM_DONE or BEAM_NOT_FINITE
#define BEAM_ITEM_COUNT 1  // finished hypotheses
#define BEAM_ITEM_WORST 2  // f32: score of the worst of them
#define BEAM_ITEM_WORDS 4
#define BEAM_SEARCHES 0
#define BEAM_DONE 1        // searches no more
#define BEAM_NOT_FINITE 2  // nor this one: the logits of a beam held NaN or infinity

// Specialization constant of both: beams per item.
#define BEAM_BEAMS (CONSTANT_OP + 0)

// candidates: per row, how many entries of {log probability, id} each row brings, best first. The
// rest: word offsets into the state.
SHADER_STRUCT(BeamStepParams) {
  uint batch;
  uint candidates;
  uint context;
  uint position;
  uint unfinished;
  uint settings;
  uint tokens;
  uint scores;
  uint ancestry;
  uint history_tokens;
  uint history_parents;
  uint finished;
  uint item_state;
}
SHADER_STRUCT_END

// Rows of a state that go where their hypotheses went. position, history_parents, item_state: word
// offsets into the state of the search.
SHADER_STRUCT(FollowBeamsParams) {
  uint batch;
  uint columns;
  uint position;
  uint history_parents;
  uint item_state;
}
SHADER_STRUCT_END

// The k best of each row of logits. Offsets: words of control. first: word of logits at which row 0
// begins. result_row: where the first row goes.
SHADER_STRUCT(TopKParams) {
  uint rows;
  uint vocabulary;
  uint k;
  uint first;
  uint result_row;
  uint banned_offset;
  uint banned_capacity;
  uint position_offset;
  uint forced_offset;
}
SHADER_STRUCT_END

#endif
