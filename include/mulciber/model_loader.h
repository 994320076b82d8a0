// Incremental loading: models are loaded in parts, one in every frame, and pipelines are compiled a
// few at a time. docs/guide/embedding.md is the guide. No Vulkan headers are needed. Errors are the
// types of mulciber/error.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "mulciber/device.h"
#include "mulciber/image_encoder.h"
#include "mulciber/image_text_reader.h"
#include "mulciber/open_model.h"
#include "mulciber/text_encoder.h"
#include "mulciber/text_generator.h"
#include "mulciber/transcriber.h"
#include "mulciber/translator.h"

namespace mulciber {

class BatchGenerator;

/// Loads a model in parts. The destructor cancels an incomplete load and frees its device memory.
/// Not thread-safe: the thread that uses the device uses the loader.
class MULCIBER_API ModelLoader {
 public:
  /// options: for models other than language models only `load` is used. Throws as the constructors
  /// of the classes below; a model that does not fit is refused before anything is allocated.
  ModelLoader(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
              const GeneratorOptions& options = {});
  ~ModelLoader();
  ModelLoader(ModelLoader&&) noexcept;
  ModelLoader& operator=(ModelLoader&&) noexcept;

  struct Progress {
    uint64_t done = 0, total = 0;  // bytes of weights in the device's format
    bool complete = false;
  };
  /// Reads, converts and uploads at most `bytes` bytes of weights, or one unit if that is larger: a
  /// row, or 256 Ki elements, of weights whose type is converted. Where memory is not mapped, it
  /// waits for the upload of the call before the last. Also calls on_progress of the options.
  Progress step(uint64_t bytes);
  Progress progress() const;

  /// Makes the object for the kind of the model. Call one of them, once, when loading is complete.
  /// They read the tokenizer and allocate contexts, caches and everything else beside weights, but
  /// compile nothing. Throw SettingError while loading is incomplete, and what the constructors
  /// throw.
  Translator translator();
  TextGenerator generator();
  TextEncoder text_encoder();
  ImageEncoder image_encoder();
  ImageClassifier image_classifier();
  ImageTextMatcher image_text_matcher();
  ImageTextReader image_text_reader();
  Transcriber transcriber();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Compiles the pipelines that tasks and calls of a model need, so that making a task compiles
/// none. The list of pipelines needs no device memory. Pipelines in
/// ApplicationDevice::pipeline_cache cost almost no time.
class MULCIBER_API PipelineWarmup {
 public:
  /// source_tokens: tokens of the longest text, end of sentence included; 0: the model's maximum.
  explicit PipelineWarmup(const Translator& translator, const TranslateOptions& options = {},
                          uint32_t source_tokens = 64);
  explicit PipelineWarmup(const TextGenerator& generator);
  /// Pipelines of decode steps and prefill passes, without those of a draft model.
  explicit PipelineWarmup(const BatchGenerator& generator);
  /// Pipelines of EmbeddingTasks with at most `tokens` tokens or embeddings; 0: the model's
  /// maximum.
  explicit PipelineWarmup(const TextEncoder& encoder, const EmbedOptions& options = {},
                          uint32_t tokens = 128);
  /// Pipelines of AttentionTasks made with this room (AttentionRoom), for texts that fit it; 0: the
  /// model's maximum.
  static PipelineWarmup of_attention(const Translator& translator, uint32_t source_tokens = 64,
                                     uint32_t target_tokens = 64);
  static PipelineWarmup of_attention(const TextGenerator& generator, uint32_t tokens = 256);
  ~PipelineWarmup();
  PipelineWarmup(PipelineWarmup&&) noexcept;
  PipelineWarmup& operator=(PipelineWarmup&&) noexcept;

  /// Number of pipelines, and of pipelines that prewarm() has not reached yet.
  size_t total() const;
  size_t left() const;
  /// Compiles up to `count` pipelines, in as many threads as ApplicationDevice::pipeline_threads
  /// allows. Returns left(). Unlike all other functions it may be called on any thread, beside
  /// other work on the device, by one thread at a time. Throws KernelError.
  size_t prewarm(size_t count);

 private:
  struct Impl;
  explicit PipelineWarmup(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Number of pipelines compiled on a device so far: a frame in which it does not grow compiled
/// none.
MULCIBER_API uint64_t pipelines_made(Device& device);

}  // namespace mulciber
