// Configuration of recurrent encoder-decoders. docs/guide/recurrence.md describes their files.
#pragma once

#include <cstdint>

#include "models/core/config.h"

namespace mulciber {

struct RecurrentConfig {
  bool additive = false;        // "bahdanau"; otherwise "luong"
  uint32_t embedding_size = 0;  // D, for both languages and the output
  uint32_t hidden_size = 0;     // H, for every cell
  uint32_t attention_size = 0;  // for additive scores
  uint32_t layers = 1;          // in Luong's encoder and decoder
  uint32_t vocabulary = 0;
  uint32_t context = 0;
  bool scale_embedding = false;  // embeddings times sqrt(D)
  GenerationConfig generation;   // eos, pad and decoder_start are set
};
/// Throws ModelError naming file and key.
RecurrentConfig read_recurrent_config(const Checkpoint& checkpoint);

}  // namespace mulciber
