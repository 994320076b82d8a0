// Beam search: its parameters, and the state that CPU and device share.
//
// The state is in the control tensor; BeamStateLayout (ops/search.h) has the position of each
// array. Row = item * beams + beam. Position 0 of a hypothesis is the start token. Every item has a
// position of its own: items may have begun at different steps.
//
//   search           one BeamSearch
//   items            per item: a BeamItem
//   finished         per item, best first: as many BeamFinished as beams
//   positions        per row, equal for the rows of an item: index of the token to be fed next
//   tokens           per row: the token to be fed next
//   scores           per row: sum of the log probabilities of the tokens chosen so far, f32
//   ancestry         per row and position t: the row of the key-value cache that holds t; from its
//                    own position on its own row
//   history_tokens   per position t and row: the token chosen for t by the row's hypothesis then
//   history_parents  per position t and row: the row of that hypothesis at t - 1
//   banned           their number, then ids that are never chosen
//   ends             their number, then ids that end a hypothesis
//   words            forbidden sequences of ids: their number, then for each its end among the ids,
//                    then the ids. Only in searches that have any
//   forbidden        per row: ids not chosen next, 0xffffffff for none. First one for each sequence
//                    of `words`: its last id, if the hypothesis ends with the ids before it.
//                    Then one for each position t, in searches in which n-grams occur once: the
//                    token of t, if choosing it next would repeat an n-gram
//
// A finished hypothesis is read backwards: from (step, row), token by token, through
// history_parents to position 0. If its length is above `step`, it ended in an id of `ends`, which
// no history contains.
#ifndef MULCIBER_SHADERS_BEAM_H
#define MULCIBER_SHADERS_BEAM_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// An id that must be chosen at one position.
SHADER_STRUCT(ForcedToken) {
  uint index;  // the position; 0xffffffff: never
  uint id;
}
SHADER_STRUCT_END

// Rules that top_k reads for the position of the token being chosen.
SHADER_STRUCT(PositionRules) {
  ForcedToken last, first;  // where both have one index, `last` counts
  uint late_from;           // below this position no end id is chosen
}
SHADER_STRUCT_END

SHADER_STRUCT(BeamSearch) {
  uint unfinished;       // items still searching
  uint ngram;            // length of the n-grams that occur once; 0: no rule
  uint pad;              // id fed by finished items
  float length_penalty;  // score = sum / length ^ penalty
  uint early_stopping;   // BEAM_STOP_*
}
SHADER_STRUCT_END

// Values of BeamItem::status.
#define BEAM_SEARCHES 0
#define BEAM_DONE 1        // has ended its search
#define BEAM_NOT_FINITE 2  // has ended: the logits of a beam held NaN or infinity

SHADER_STRUCT(BeamItem) {
  uint status;          // BEAM_SEARCHES, BEAM_DONE or BEAM_NOT_FINITE
  uint count;           // finished hypotheses
  float worst;          // score of the worst of them
  uint last_position;   // position of the last token of the longest hypothesis
  PositionRules rules;  // read by top_k
}
SHADER_STRUCT_END

SHADER_STRUCT(BeamFinished) {
  float score;
  uint length;  // ids after the start token, including the end id
  uint row;
  uint step;
  uint end;  // the end id, if length is above step
}
SHADER_STRUCT_END

// When an item with as many finished hypotheses as beams ends its search.
// when the best running sum, at its present length, beats none of them
#define BEAM_STOP_HEURISTIC 0
#define BEAM_STOP_EARLY 1  // at once
// when the best running sum, at any length, beats none of them
#define BEAM_STOP_NEVER 2

// Specialization constant of both kernels: beams per item.
#define BEAM_BEAMS (CONSTANT_OP + 0)

// candidates: per row, the number of its entries {log probability, id}, sorted best first. Struct
// arrays: index of the first struct in control, seen as an array of them. All others: words of
// control.
SHADER_STRUCT(BeamStepParams) {
  uint batch;
  uint candidates;
  uint context;
  uint search;
  uint items;
  uint finished;
  uint positions;
  uint tokens;
  uint scores;
  uint ancestry;
  uint history_tokens;
  uint history_parents;
  uint ends;
  uint ends_room;  // capacity for ids
  uint words;
  uint words_room;  // capacity for sequences; 0: none
  uint forbidden;
  uint forbidden_row;  // entries per row; equal to words_room: n-grams may repeat
}
SHADER_STRUCT_END

// Rows of a state that follow their hypotheses. items, positions, history_parents: see
// BeamStepParams.
SHADER_STRUCT(FollowBeamsParams) {
  uint batch;
  uint columns;
  uint items;
  uint positions;
  uint history_parents;
}
SHADER_STRUCT_END

// The k best of each row of logits. banned, ends: words of control where lists begin; position:
// word of control; rules: word of the first PositionRules; forbidden: word of rows of forbidden
// ids, each `forbidden_row` long, of which at most forbidden_first + position + 1 are used. first:
// word of logits at which row 0 begins. result_row: row of the result for the first row.
SHADER_STRUCT(TopKParams) {
  uint rows;
  uint vocabulary;
  uint row_stride;  // elements from one row of logits to the next
  uint k;
  uint first;
  uint result_row;
  uint banned;
  uint banned_capacity;
  uint position;         // index of the last token fed; the chosen token has the next index
  uint position_stride;  // 0: one for all rows, 1: one for each
  uint rules;
  uint rules_rows;    // rows per PositionRules
  uint rules_stride;  // words from one to the next; 0: one for all rows
  uint ends;
  uint ends_room;
  uint forbidden;
  uint forbidden_row;
  uint forbidden_first;
}
SHADER_STRUCT_END

#endif
