// Sampling: the parameters of its two kernels, and the state that host and device share.
//
// The state stands in the control tensor; SampleStateLayout (ops/sampling.h) says where each array
// begins. `rows` sequences in all.
//
//   positions  per row: tokens before the one to be fed next: their keys and values are in the
//              cache
//   tokens     per row: that token
//   fed        per row: tokens that the step of this choice feeds; 1 again afterwards
//   counts     per row: tokens of the history so far, whatever it still holds of them
//   stopped    per row: SAMPLE_RUNNING, ...
//   settings   per row: SampleSettings
//   history    per row: `history_capacity` ids; token t of the sequence, the prompt included,
//              stands at t % history_capacity
//   biases     per row: how many, then room for `bias_capacity` ids, then for what is added to the
//              logit of each; an id stands there once
//   masks      per row: whether it has a mask, then a bit for each id of the vocabulary, 32 to a
//              word: an id whose bit is 0 is impossible
//   banned     how many, then ids that are never chosen
//   stops      how many, then ids that end a row
//
// `progress` is what the host reads while the device goes on, and may be host memory: per row its
// count and whether it is stopped, then (rows, ring) ids: token t of a sequence stands at t % ring.
#ifndef MULCIBER_SHADERS_SAMPLE_H
#define MULCIBER_SHADERS_SAMPLE_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

#define SAMPLE_RUNNING 0
#define SAMPLE_STOP_ID 1     // chose one of `stops`
#define SAMPLE_LIMIT 2       // came to its last position, or to its last token
#define SAMPLE_IDLE 3        // takes no part: nothing of it changes
#define SAMPLE_NOT_FINITE 4  // its logits held NaN or infinity: it chose nothing

// How a row chooses.
SHADER_STRUCT(SampleSettings) {
  uint seed_low, seed_high;
  uint stream;
  float temperature;         // 0: the largest logit
  uint top_k;                // 0: off
  float top_p;               // 1: off
  float min_p;               // 0: off
  float typical_p;           // 1: off
  float repetition_penalty;  // 1: off
  float presence_penalty;    // 0: off
  float frequency_penalty;   // 0: off
  uint penalty_window;       // tokens, the latest, that penalties look at
  uint last_position;
  uint last_count;
}
SHADER_STRUCT_END

// Chunks of a row that the second kernel has room for.
#define SAMPLE_MOST_CHUNKS 1024
// Ids of the largest chunk, and of the smallest.
#define SAMPLE_MOST_CHUNK 512
#define SAMPLE_LEAST_CHUNK 256

// chunk: ids per chunk, a power of two. settings: index of row 0's in control seen as an array of
// SampleSettings. The rest: words of control.
SHADER_STRUCT(SampleParams) {
  uint vocabulary;
  uint chunk;
  uint chunks;
  uint history_capacity;
  uint banned_capacity;
  uint stop_capacity;
  uint bias_capacity;
  uint mask_words;  // of a row's bits; 0: rows have no masks
  uint positions;
  uint tokens;
  uint fed;
  uint counts;
  uint stopped;
  uint settings;
  uint history;
  uint biases;
  uint masks;
  uint banned;
  uint stops;
  uint ring;
  uint rows;
  uint first_chunk;  // of the first kernel's dispatch, and one past its last
  uint end_chunk;
}
SHADER_STRUCT_END

#endif
