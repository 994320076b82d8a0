// Continuous batching of translations: many texts on one model, each of which joins, is searched
// and leaves between two steps of the others. No Vulkan headers are needed. Errors are the types of
// mulciber/error.h; nothing is printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "mulciber/translator.h"

namespace mulciber {

struct BatchTranslatorOptions {
  /// Texts of a search that are under way at once; one beyond them waits for a place. Fewer where
  /// the device's memory has no room for so many.
  uint32_t places = 16;
};

struct TranslationRequest {
  std::string text;
  /// But for attention, the bounds of batches, progress and cancel, which do not count.
  TranslateOptions options;
  /// Called by step(), one of them once for every request that submit() took. They may call
  /// submit() and cancel(), and must not throw. What was cancelled is not `complete`.
  std::function<void(const Translation&)> on_end;
  /// The logits of this text were NaN or infinite (ModelError), or a search that it needs does not
  /// fit the device's memory (DeviceError).
  std::function<void(const std::exception&)> on_error;
};

/// Since the batch was made.
struct BatchTranslatorStatistics {
  uint64_t requests = 0, ended = 0, cancelled = 0;
  uint64_t source_tokens = 0, target_tokens = 0;
  uint64_t steps = 0;
  uint64_t text_steps = 0;  // texts that took part, added up: over steps, the mean size of a batch
  uint64_t row_steps = 0, needed_row_steps = 0, refills = 0;  // as TranslateStatistics
  double encode_seconds = 0, decode_seconds = 0;
};

/// A translator that many texts share. Not thread-safe: one thread submits, steps and cancels, and
/// uses the translator between steps.
///
/// A translation depends on its request and on `places` alone, bit for bit: not on who else is
/// there, nor on when they came. Texts search together whose beams and rules are the same; the
/// language, and how long a translation may be, are each text's own.
class MULCIBER_API BatchTranslator {
 public:
  /// translator: goes on to serve; its model stays while this is there.
  explicit BatchTranslator(Translator& translator, const BatchTranslatorOptions& options = {});
  ~BatchTranslator();
  BatchTranslator(BatchTranslator&&) noexcept;
  BatchTranslator& operator=(BatchTranslator&&) noexcept;

  /// Takes a request, which joins at a step to come: in the order of submission among those that
  /// search together. The number names it for cancel(). Throws as Translator::translate(): nothing
  /// is kept of it then.
  uint64_t submit(TranslationRequest request);
  /// Ends a request at the next step(). One that has ended already is left alone.
  void cancel(uint64_t request);
  /// Takes in texts that wait, and makes a step of every search. False when there is nothing to do.
  /// Throws DeviceError when the device is lost.
  bool step();

  /// Requests that have a place, and that wait for one.
  size_t running() const;
  size_t waiting() const;
  const BatchTranslatorStatistics& statistics() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
