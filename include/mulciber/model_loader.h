// Models that are loaded a part in every frame, and pipelines that are compiled a few at a time.
// docs/guide/embedding.md is the guide. No Vulkan headers are needed. Errors are the types of
// mulciber/error.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "mulciber/device.h"
#include "mulciber/open_model.h"
#include "mulciber/text_encoder.h"
#include "mulciber/text_generator.h"
#include "mulciber/translator.h"

namespace mulciber {

class BatchGenerator;

/// A model on its way to a device. Destroying it before it is complete cancels, and gives the
/// device's memory back. One thread at a time, of the device's.
class MULCIBER_API ModelLoader {
 public:
  /// options: of a language model; of others `load` alone counts. Throws as the constructors of
  /// Translator, TextGenerator and TextEncoder: what does not fit is refused before anything is
  /// allocated.
  ModelLoader(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
              const GeneratorOptions& options = {});
  ~ModelLoader();
  ModelLoader(ModelLoader&&) noexcept;
  ModelLoader& operator=(ModelLoader&&) noexcept;

  struct Progress {
    uint64_t done = 0, total = 0;  // bytes of weights, as the device has them
    bool complete = false;
  };
  /// Reads, converts and uploads at most so many bytes of weights, or one piece where that is more:
  /// a row, or 256 Ki numbers, of weights whose type changes on the way. What was uploaded two
  /// calls ago is waited for where memory is not mapped. Also calls on_progress of the options.
  Progress step(uint64_t bytes);
  Progress progress() const;

  /// Of a loader that is complete, the one that fits the model, once. They read the tokenizer and
  /// allocate contexts, caches and what else stands beside weights, but compile nothing. Throw
  /// SettingError before that, and as those constructors.
  Translator translator();
  TextGenerator generator();
  TextEncoder text_encoder();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The pipelines that tasks and calls of a model need, so that making a task compiles none of them.
/// Which they are is known from the start: nothing is allocated on the device for that. Those of a
/// HostDevice::pipeline_cache cost next to nothing.
class MULCIBER_API PipelineWarmup {
 public:
  /// source_tokens: of the longest text, end of sentence included; 0: what the model takes.
  explicit PipelineWarmup(const Translator& translator, const TranslateOptions& options = {},
                          uint32_t source_tokens = 64);
  explicit PipelineWarmup(const TextGenerator& generator);
  /// Of steps, and of passes over prompts; not of a draft model's.
  explicit PipelineWarmup(const BatchGenerator& generator);
  /// Of EmbeddingTasks of texts of at most so many tokens, or as many embeddings; 0: what the
  /// model takes.
  explicit PipelineWarmup(const TextEncoder& encoder, const EmbedOptions& options = {},
                          uint32_t tokens = 128);
  /// Of AttentionTasks that are made with this room (AttentionRoom), which suffices for their
  /// texts; 0: what the model takes.
  static PipelineWarmup of_attention(const Translator& translator, uint32_t source_tokens = 64,
                                     uint32_t target_tokens = 64);
  static PipelineWarmup of_attention(const TextGenerator& generator, uint32_t tokens = 256);
  ~PipelineWarmup();
  PipelineWarmup(PipelineWarmup&&) noexcept;
  PipelineWarmup& operator=(PipelineWarmup&&) noexcept;

  /// How many there are, and how many were not asked for yet.
  size_t total() const;
  size_t left() const;
  /// Compiles up to `count` of them, in as many threads as HostDevice::pipeline_threads allows.
  /// Result: left(). Unlike everything else of a device it may be called on any thread, beside any
  /// work, one at a time. Throws KernelError.
  size_t prewarm(size_t count);

 private:
  struct Impl;
  explicit PipelineWarmup(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Pipelines that were compiled on a device so far: a frame in which it stays was spared that.
MULCIBER_API uint64_t pipelines_made(Device& device);

}  // namespace mulciber
