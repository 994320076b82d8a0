// Continuous batching of translations: many texts share one model, and each joins and leaves a
// running beam search between two steps of the others. No Vulkan headers are needed. Errors are the
// types of mulciber/error.h; nothing is printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mulciber/translator.h"

namespace mulciber {

struct BatchTranslatorOptions {
  /// Slots of a search; a request waits until one is free. There are fewer when the device's memory
  /// does not suffice.
  union {
    uint32_t slots = 16;
    [[deprecated("use slots")]] uint32_t places;
  };
};

struct TranslationRequest {
  std::string text;
  /// attention, batch_tokens, batch_sentences, progress and cancel are ignored.
  TranslateOptions options;
  /// step() calls on_end or on_error once for every request that submit() accepted. They may call
  /// submit() and cancel(), and must not throw. A cancelled translation is not `complete`.
  std::function<void(const Translation&)> on_end;
  /// Called when the logits of this text were NaN or infinite (ModelError), or the search that it
  /// needs does not fit the device's memory (DeviceError).
  /// The exception is being handled then: `throw;` and std::current_exception() give it.
  std::function<void(const std::exception&)> on_error;
  /// Ids of a source in place of `text`, as Translator::translate_ids() takes them.
  std::vector<uint32_t> source_ids;
};

/// Counts and times since the batch was created.
struct BatchTranslatorStatistics {
  uint64_t requests = 0, ended = 0, cancelled = 0;
  uint64_t source_tokens = 0, target_tokens = 0;
  uint64_t steps = 0;
  union {
    uint64_t sequence_steps = 0;  // sum of the batch size over steps
    uint64_t text_steps [[deprecated("use sequence_steps")]];
  };
  uint64_t row_steps = 0, needed_row_steps = 0, refills = 0;  // see TranslateStatistics
  double encode_seconds = 0, decode_seconds = 0;
};

/// A translator that many texts share. Not thread-safe: the thread that uses the translator between
/// steps also submits, steps and cancels.
///
/// A translation depends on its request and on `slots` alone, bit for bit: neither on the batch
/// composition nor on the order of submission. Texts with equal beams and rules share a search; the
/// languages and max_new_tokens may differ within it.
class MULCIBER_API BatchTranslator {
 public:
  /// translator: remains usable; its model lives as long as this object.
  explicit BatchTranslator(Translator& translator, const BatchTranslatorOptions& options = {});
  ~BatchTranslator();
  BatchTranslator(BatchTranslator&&) noexcept;
  BatchTranslator& operator=(BatchTranslator&&) noexcept;

  /// Queues a request, which joins at a later step, in the order of submission among the texts of
  /// its search. Returns the number that cancel() takes. Throws as Translator::translate(); the
  /// request is then dropped.
  uint64_t submit(TranslationRequest request);
  /// Ends a request at the next step(). Does nothing for a request that has ended.
  void cancel(uint64_t request);
  /// Admits waiting texts, and computes a step of every search. Returns false when there is nothing
  /// to do. Throws DeviceError when the device is lost.
  bool step();

  /// Requests in a slot, and requests that wait for one.
  size_t running() const;
  size_t waiting() const;
  const BatchTranslatorStatistics& statistics() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
