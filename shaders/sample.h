// Sampling: the parameters of its two kernels, and the state that CPU and device share.
//
// The state is in the control tensor; SampleStateLayout (ops/sampling.h) has the position of each
// array. There are `rows` sequences.
//
//   positions  per row: tokens before the one to be fed next: their keys and values are in the
//              cache
//   tokens     per row: that token
//   fed        per row: tokens that the step of this choice feeds; 1 again afterwards
//   counts     per row: tokens of the history so far, whatever it still holds of them
//   stopped    per row: SAMPLE_RUNNING, ...
//   settings   per row: SampleSettings
//   history    per row: `history_capacity` ids; token t of the sequence, the prompt included,
//              is at t % history_capacity
//   biases     per row: their number, then room for `bias_capacity` ids, each occurring once, then
//              for the number to add to the logit of each
//   masks      per row: whether it has a mask, then a bit for each id of the vocabulary, 32 to a
//              word: an id whose bit is 0 is impossible
//   banned     their number, then ids that are never chosen
//   stops      their number, then ids that end a row
//
// The CPU reads `progress` while the device continues; it may be host-visible memory. It has per
// row its count and whether it is stopped, then (rows, ring) ids: token t of a sequence is at t %
// ring.
#ifndef MULCIBER_SHADERS_SAMPLE_H
#define MULCIBER_SHADERS_SAMPLE_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

#define SAMPLE_RUNNING 0
#define SAMPLE_STOP_ID 1     // chose one of `stops`
#define SAMPLE_LIMIT 2       // reached its last position or its last token
#define SAMPLE_IDLE 3        // takes no part: nothing changes
#define SAMPLE_NOT_FINITE 4  // its logits held NaN or infinity: nothing was chosen

// The settings of a row's choice.
SHADER_STRUCT(SampleSettings) {
  uint seed_low, seed_high;
  uint stream;
  float temperature;         // 0: take the largest logit
  uint top_k;                // 0: off
  float top_p;               // 1: off
  float min_p;               // 0: off
  float typical_p;           // 1: off
  float repetition_penalty;  // 1: off
  float presence_penalty;    // 0: off
  float frequency_penalty;   // 0: off
  uint penalty_window;       // number of latest tokens to which penalties apply
  uint last_position;
  uint last_count;
}
SHADER_STRUCT_END

// Most chunks of a row in the second kernel.
#define SAMPLE_MOST_CHUNKS 1024
// Ids of the largest and of the smallest chunk.
#define SAMPLE_MOST_CHUNK 512
#define SAMPLE_LEAST_CHUNK 256

// chunk: ids per chunk, a power of two. settings: index of row 0's settings in control, seen as an
// array of SampleSettings. All others: words of control.
SHADER_STRUCT(SampleParams) {
  uint vocabulary;
  uint chunk;
  uint chunks;
  uint history_capacity;
  uint banned_capacity;
  uint stop_capacity;
  uint bias_capacity;
  uint mask_words;  // words of a row's bits; 0: no masks
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
  uint first_chunk;  // first chunk of the first kernel's dispatch, and end
  uint end_chunk;
}
SHADER_STRUCT_END

#endif
