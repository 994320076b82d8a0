// Sequences that grow token by token: the state that host and device share, and the op that moves it on.
//
// The state stands in the control tensor, in words; SequenceStateLayout (runtime/ops/sequence.h) says where
// each field begins. Per row:
//
//   tokens     the token to be fed next
//   positions  tokens whose keys and values are in the cache
//   fed        tokens that this pass feeds
//   states     SEQUENCE_*
//   counts     tokens chosen so far
//   limits     tokens to choose at most
//
// and once: steps (passes made), stops (how many ids end a sequence, then the ids).
#ifndef MULCIBER_SHADERS_SEQUENCE_H
#define MULCIBER_SHADERS_SEQUENCE_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

#define SEQUENCE_RUNNING 0
#define SEQUENCE_STOPPED 1  // chose one of the ids that end a sequence
#define SEQUENCE_LIMITED 2  // chose as many tokens as it may, or has no room for the last one's keys
#define SEQUENCE_IDLE 3     // takes no part: nothing of it changes

// Words of progress, which may be host memory: steps, running rows, then per row its count and its state,
// then (rows, ring) chosen tokens: number n of a row stands at n % ring.
#define SEQUENCE_PROGRESS_ROWS 2

// candidates: entries of {log probability, id} per row, best first. capacity: of the cache. The rest: word
// offsets into control.
SHADER_STRUCT(AdvanceParams) {
  uint rows;
  uint candidates;
  uint capacity;
  uint ring;
  uint tokens;
  uint positions;
  uint fed;
  uint states;
  uint counts;
  uint limits;
  uint steps;
  uint stops;
  uint stop_capacity;
} SHADER_STRUCT_END

#endif
