#include "models/generation/sequence_decoding.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/generation/completion_grammar.h"
#include "models/generation/decoding.h"
#include "mulciber/error.h"
#include "mulciber/text_generator.h"

namespace mulciber {
namespace {

class Decoding {
 public:
  Decoding(SequenceSlots& slots, uint32_t slot, const DecodingOptions& options)
      : slots_(slots), slot_(slot), options_(options) {}

  DecodedSequence run(const SlotSequence& sequence) {
    const double built = slots_.build_seconds();
    const auto start = Clock::now();
    prefill(sequence);
    const double built_for_prompt = slots_.build_seconds();
    result_.prefill_seconds = seconds_since(start) - (built_for_prompt - built);
    const auto decoding = Clock::now();
    while (running_ && !cancelled()) step();
    result_.build_seconds = slots_.build_seconds() - built;
    result_.decode_seconds = seconds_since(decoding) - (slots_.build_seconds() - built_for_prompt);
    return std::move(result_);
  }

 private:
  bool cancelled() const { return options_.cancel && options_.cancel->load(); }

  void prefill(const SlotSequence& sequence) {
    const auto size = static_cast<uint32_t>(sequence.prompt.size());
    if (size > slots_.shape().context)
      throw ModelError("prompt",
                       fmt::format("takes the context to {} tokens, there is room for {}", size,
                                   slots_.shape().context),
                       "ask for a larger context, or give a shorter text");
    uint32_t held = slots_.begin(slot_, sequence);
    if (!set_mask()) return;
    while (held < size && !cancelled()) {
      const uint32_t most = std::min(size - held, slots_.shape().chunk);
      const uint32_t fed = std::min(most, slots_.pass_tokens(held, most));
      held += fed;
      const bool chooses = held == size && options_.max_new_tokens > 0;
      const SequenceSlots::Choice choice = slots_.feed(slot_, fed, chooses);
      running_ = chooses;
      if (chooses) take(choice);
    }
  }

  void step() {
    const uint32_t slots[] = {slot_};
    const auto taken = static_cast<uint32_t>(result_.ids.size());
    const uint32_t most =
        std::min(options_.max_new_tokens - taken, slots_.shape().context - slots_.length(slot_));
    Device& device = slots_.state().device();
    const uint32_t together = options_.steps_per_submission > 0
                                  ? options_.steps_per_submission
                                  : device.capabilities().tuning.steps_per_submission;
    const uint32_t count = options_.grammar ? 1 : std::min(steps_at_once(device, together), most);
    const SequenceSlots::Choice choice =
        count > 1 ? slots_.steps(slots, count, together).front() : slots_.step(slots).front();
    ++result_.steps;
    take(choice);
    for (uint32_t i = 1; i < count && running_; ++i) {
      ++result_.steps;
      take(slots_.follow(slot_).value());
    }
  }

  void take(const SequenceSlots::Choice& choice) {
    if (!choice) slots_.refuse(slot_);
    const uint32_t id = *choice;
    result_.ids.push_back(id);
    running_ = !std::ranges::count(options_.stops, id) &&
               result_.ids.size() < options_.max_new_tokens &&
               slots_.length(slot_) < slots_.shape().context;
    if (options_.grammar) {
      const auto begin = Clock::now();
      options_.grammar->take(id);
      if (running_) running_ = set_mask();
      result_.grammar_seconds += seconds_since(begin);
    }
    if (options_.on_token) options_.on_token(id);
  }

  /// Sets the mask of the next choice. Returns false where the grammar allows nothing more.
  bool set_mask() {
    if (!options_.grammar) return true;
    const std::optional<std::span<const uint32_t>> mask = options_.grammar->next();
    if (mask) slots_.set_mask(slot_, *mask);
    return mask.has_value();
  }

  SequenceSlots& slots_;
  uint32_t slot_;
  const DecodingOptions& options_;
  DecodedSequence result_;
  bool running_ = false;
};

}  // namespace

SlotShape conversation_slots(const Capabilities& device, const DecoderNetwork& network,
                             uint32_t slots, uint32_t context) {
  SlotShape shape = {.slots = slots,
                     .context = context,
                     .chunk = pass_length(context, context, context),
                     .biases = kMostLogitBiases};
  // A rejected draft token cannot be taken back from a state.
  if (slots == 1 && !network.decoder.keeps_states()) shape.draft_rows = kMostDraftTokens;
  return SequenceSlots::bindable(device, network, shape);
}

DecodedSequence decode_sequence(SequenceSlots& slots, uint32_t slot, const SlotSequence& sequence,
                                const DecodingOptions& options) {
  return Decoding(slots, slot, options).run(sequence);
}

}  // namespace mulciber
