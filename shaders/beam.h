// Beam search: its parameters, and the state that host and device share.
//
// The state stands in the control tensor; BeamStateLayout (ops/search.h) says where each array
// begins. Row = item * beams + beam. Position 0 of a hypothesis is the start token. Every item has
// a position of its own: items may have begun at different steps.
//
//   search           one BeamSearch
//   items            per item: a BeamItem
//   finished         per item, best first: as many BeamFinished as beams
//   positions        per row, alike for the rows of an item: index of the token to be fed next
//   tokens           per row: the token to be fed next
//   scores           per row: sum of the log probabilities of the tokens chosen so far, f32
//   ancestry         per row and position t: the row of the key-value cache that holds t; from its
//                    own position on its own row
//   history_tokens   per position t and row: the token chosen for t by the hypothesis then there
//   history_parents  per position t and row: the row of that hypothesis at t - 1
//   banned           how many, then ids that are never chosen
//   ends             how many, then ids that end a hypothesis
//   words            sequences of ids that never occur: how many, then for each where it ends among
//                    the ids, then the ids. Only of searches that have any
//   forbidden        per row: ids not chosen next, 0xffffffff where there is none. First one for
//                    each sequence of `words`: its last id, where the hypothesis ends with those
//                    before it. Then one for each position t, of searches in which n-grams occur
//                    once: the token of t, where choosing it next would repeat one
//
// A finished hypothesis is read backwards: from (step, row), token by token, through
// history_parents to position 0. Where its length is above `step`, it ended in an id of `ends`,
// which stands in no history.
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

// What top_k looks up for the position that a token is chosen for.
SHADER_STRUCT(PositionRules) {
  ForcedToken last, first;  // where both are of one position, `last` counts
  uint late_from;           // below this position no id is chosen that ends a hypothesis
}
SHADER_STRUCT_END

SHADER_STRUCT(BeamSearch) {
  uint unfinished;       // items still searching
  uint ngram;            // length of the n-grams that occur once; 0: they may repeat
  uint pad;              // id fed by items that are done
  float length_penalty;  // score = sum / length ^ penalty
  uint early_stopping;   // BEAM_STOP_*
}
SHADER_STRUCT_END

// Values of BeamItem::status.
#define BEAM_SEARCHES 0
#define BEAM_DONE 1        // searches no more
#define BEAM_NOT_FINITE 2  // nor this one: the logits of a beam held NaN or infinity

SHADER_STRUCT(BeamItem) {
  uint status;          // BEAM_SEARCHES, BEAM_DONE or BEAM_NOT_FINITE
  uint count;           // finished hypotheses
  float worst;          // score of the worst of them
  uint last_position;   // the longest hypothesis has its last token here
  PositionRules rules;  // read by top_k
}
SHADER_STRUCT_END

SHADER_STRUCT(BeamFinished) {
  float score;
  uint length;  // ids after the start token, the one that ends it included
  uint row;
  uint step;
  uint end;  // the id that ended it, where length is above step
}
SHADER_STRUCT_END

// When an item with as many finished hypotheses as beams is done.
// when the best running sum, at its present length, beats none of them
#define BEAM_STOP_HEURISTIC 0
#define BEAM_STOP_EARLY 1  // at once
// when the best running sum, at any length, beats none of them
#define BEAM_STOP_NEVER 2

// Specialization constant of both: beams per item.
#define BEAM_BEAMS (CONSTANT_OP + 0)

// candidates: per row, how many entries of {log probability, id} each row brings, best first. Of
// structs: index of the first in control seen as an array of them. The rest: words of control.
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
  uint ends_room;  // ids that there is room for
  uint words;
  uint words_room;  // sequences that there is room for; 0: none
  uint forbidden;
  uint forbidden_row;  // entries of a row; words_room: n-grams may repeat
}
SHADER_STRUCT_END

// Rows of a state that go where their hypotheses went. items, positions, history_parents: as
// BeamStepParams has them.
SHADER_STRUCT(FollowBeamsParams) {
  uint batch;
  uint columns;
  uint items;
  uint positions;
  uint history_parents;
}
SHADER_STRUCT_END

// The k best of each row of logits. banned, ends: words of control, of lists; position: word of
// control; rules: word of the first PositionRules; forbidden: word of rows of ids that are not
// chosen, each `forbidden_row` long, of which forbidden_first + position + 1 count at most. first:
// word of logits at which row 0 begins. result_row: where the first row goes.
SHADER_STRUCT(TopKParams) {
  uint rows;
  uint vocabulary;
  uint row_stride;  // elements from one row of logits to the next
  uint k;
  uint first;
  uint result_row;
  uint banned;
  uint banned_capacity;
  uint position;         // index of the token just fed; the one being chosen is the next
  uint position_stride;  // 0: one for all rows, 1: one for each
  uint rules;
  uint rules_rows;    // that one PositionRules is for
  uint rules_stride;  // words from one to the next; 0: one for all rows
  uint ends;
  uint ends_room;
  uint forbidden;
  uint forbidden_row;
  uint forbidden_first;
}
SHADER_STRUCT_END

#endif
