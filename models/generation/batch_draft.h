// A draft model beside a BatchGenerator: it drafts tokens behind the generator's sequences, in
// decode steps over all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "models/generation/sequence_slots.h"
#include "models/generation/shared_generator.h"

namespace mulciber {

class BatchDraft {
 public:
  /// options: the model's; its adapters and masked heads are dropped, because they belong to the
  /// model alone. shape: the model's slots. Throws ModelError where the draft model has other
  /// tokens or its layers keep a state, and throws what loading the model throws.
  BatchDraft(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> files,
             GeneratorOptions options, SlotShape shape, const Tokenizer& tokenizer);
  /// Drafts in slots that another generator has, which must not be used meanwhile.
  BatchDraft(SharedGenerator model, std::shared_ptr<SequenceSlots> slots)
      : shared_(std::move(model)), slots_(std::move(slots)), begun_(slots_->shape().slots) {}

  /// A sequence behind which tokens are drafted.
  struct Sequence {
    uint32_t slot = 0;
    std::vector<uint32_t> ids;  // prompt and answer
    uint32_t most = 0;          // draft tokens at most
    Sampling sampling;
    uint32_t stream = 0;
    LogitBiases biases;
  };
  /// Draft tokens behind each sequence, chosen with the sequence's sampling settings and random
  /// numbers. A sequence gets none where it does not fit the draft model's context or pages, or is
  /// not yet prefilled: a call prefills one chunk of one sequence.
  std::vector<std::vector<uint32_t>> draft(std::span<const Sequence> sequences);

  /// Follow the same calls of SequenceSlots for the model's slots.
  void exchange(uint32_t a, uint32_t b);
  void end(uint32_t slot);

  void trim() { slots_->trim(); }

  uint64_t weight_bytes() const { return shared_.model->weight_bytes(); }
  uint64_t predicted_bytes() const { return predicted_bytes_; }
  double build_seconds() const { return slots_->build_seconds(); }

 private:
  /// Tokens of a sequence, without its last, whose keys and values are not in the cache.
  uint32_t missing(const Sequence& sequence) const;

  SharedGenerator shared_;
  std::shared_ptr<SequenceSlots> slots_;
  std::vector<bool> begun_;  // by slot
  uint64_t predicted_bytes_ = 0;
};

}  // namespace mulciber
