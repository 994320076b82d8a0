// Prefill and decode one sequence in a slot, from its prompt to its last token.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/generation/sequence_slots.h"

namespace mulciber {

class CompletionGrammar;

/// Slots for whole conversations: prompts are prefilled in the longest passes, and a single slot
/// has rows for draft tokens beside it. Fewer tokens where the device cannot bind them at once.
SlotShape conversation_slots(const Capabilities& device, const DecoderNetwork& network,
                             uint32_t slots, uint32_t context);

struct DecodingOptions {
  uint32_t max_new_tokens = 0;        // 0: the prompt is prefilled, and nothing is chosen
  std::vector<uint32_t> stops;        // ids that end the sequence
  CompletionGrammar* grammar = {};    // null: any id may be chosen
  uint32_t steps_per_submission = 0;  // 0: as many as suit the device
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(uint32_t id)> on_token;
};

struct DecodedSequence {
  std::vector<uint32_t> ids;  // the one that ended it included
  uint32_t steps = 0;         // decode steps, after prefill
  double build_seconds = 0, prefill_seconds = 0, decode_seconds = 0;
  double grammar_seconds = 0;  // part of decode_seconds: finding masks, following ids
};

/// Begins a sequence and decodes it. It then has the slot until SequenceSlots::end(). Throws
/// ModelError when the prompt does not fit the context, LogitsError when logits are NaN or
/// infinite, and the ModelError of a grammar.
DecodedSequence decode_sequence(SequenceSlots& slots, uint32_t slot, const SlotSequence& sequence,
                                const DecodingOptions& options);

}  // namespace mulciber
