// The search of a batch, in which items that are done leave their places to others.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/decoding/encoder_decoder_programs.h"
#include "models/translation_model.h"

namespace mulciber {

struct BatchSearchResult {
  std::vector<std::vector<Hypothesis>> items;  // finished, best first
  std::optional<uint32_t> not_finite;          // the first item whose logits were not
  bool cancelled = false;                      // the rest is not to be used then
  uint32_t steps = 0;
  uint64_t row_steps = 0;  // rows of the steps, together
  double encode_seconds = 0, decode_seconds = 0;
};

/// Items of a batch that still search are moved together, and go on in smaller steps, whenever a
/// quarter of the batch or more is done. What is found has the bits that the whole batch would
/// give. control: before the first step, of programs.all.
BatchSearchResult search_batch(Device& device, const EncoderDecoderNetwork& network,
                               SearchPrograms& programs, ControlWords control,
                               const GenerationRequest& request);

/// 1, 2, 3, 4, 6, 8, 12, 16, 24, ...: so many items a program is built for, of which at most a
/// third are padding.
uint32_t round_up_batch(uint32_t items);

}  // namespace mulciber
