// A draft model beside the texts of a BatchGenerator: what it proposes behind each, one step over
// all of them at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/generation/sequence_slots.h"
#include "models/generation/shared_generator.h"

namespace mulciber {

class BatchDraft {
 public:
  /// options: of the model; what is its own (adapters, heads that are switched off) is left out.
  /// shape: of its slots. Throws ModelError where the draft's tokens are others, or its layers keep
  /// a state; else as the model's.
  BatchDraft(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> files,
             GeneratorOptions options, SlotShape shape, const Tokenizer& tokenizer);

  /// A text that shall go on.
  struct Text {
    uint32_t slot = 0;
    std::vector<uint32_t> ids;  // prompt and answer
    uint32_t most = 0;          // tokens to propose
    Sampling sampling;
    uint32_t stream = 0;
    LogitBiases biases;
  };
  /// Tokens behind each text, chosen with the same settings and random numbers; none where it has
  /// not yet read the text, which it does in parts, one of one text a call.
  std::vector<std::vector<uint32_t>> propose(std::span<const Text> texts);

  /// As those of the texts' slots.
  void exchange(uint32_t a, uint32_t b);
  void end(uint32_t slot);

  uint64_t weight_bytes() const { return shared_.model->weight_bytes(); }
  uint64_t predicted_bytes() const { return predicted_bytes_; }
  double build_seconds() const { return slots_->build_seconds(); }

 private:
  /// Tokens of a text before its last that are not held.
  uint32_t missing(const Text& text) const;

  SharedGenerator shared_;
  std::unique_ptr<SequenceSlots> slots_;
  std::vector<bool> begun_;  // by slot
  uint64_t predicted_bytes_ = 0;
};

}  // namespace mulciber
