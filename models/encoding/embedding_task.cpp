// Text embeddings in slices.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/core/frame_task.h"
#include "models/encoding/encoding_pass.h"
#include "models/encoding/text_encoder_impl.h"

namespace mulciber {

struct EmbeddingTask::Work {
  std::shared_ptr<TextEncoder::Impl> encoder;
  bool truncated = false;
  std::unique_ptr<EncodingPass> started;  // until the task takes it
  const EncodingPass* pass = nullptr;

  explicit Work(std::shared_ptr<TextEncoder::Impl> owner) : encoder(std::move(owner)) {}
  void start(EncodingStart what, const EmbedOptions& options) {
    if (options.dimensions > 0)
      throw SettingError("EmbedOptions::dimensions", "are given for a task, whose vector is whole",
                         "read the first values of the vector");
    what.output = encoder->output(options);
    what.normalized = encoder->normalizes(options);
    started = encoder->encoder->start(what);
    pass = started.get();
  }
};

std::unique_ptr<EmbeddingTask::Work> EmbeddingTask::of_text(TextEncoder& encoder,
                                                            const std::string& text,
                                                            const EmbedOptions& options) {
  auto work = std::make_unique<Work>(encoder.impl_);
  TextEncoder::Impl& impl = *work->encoder;
  TokenizedInput input = impl.tokenize(impl.prompt(options) + text, nullptr);
  impl.fit(input, impl.most_tokens(), options.batch.truncate, "text");
  work->truncated = input.truncated;
  const auto tokens = static_cast<uint32_t>(input.ids.ids.size());
  work->start({.input = std::move(input.ids), .embeddings = {}, .tokens = tokens}, options);
  return work;
}

std::unique_ptr<EmbeddingTask::Work> EmbeddingTask::of_embeddings(
    TextEncoder& encoder, const ApplicationBuffer& embeddings, uint32_t tokens,
    const EmbedOptions& options) {
  auto work = std::make_unique<Work>(encoder.impl_);
  const uint64_t bytes = uint64_t{tokens} * encoder.embedding_width() * sizeof(float);
  if (embeddings.buffer == VK_NULL_HANDLE || embeddings.size < bytes)
    throw SettingError("embeddings",
                       fmt::format("of {} tokens take {} bytes, the buffer's range has {}", tokens,
                                   bytes, embeddings.size),
                       "give ApplicationBuffer::buffer and a size that suffices");
  BufferView from;
  from.buffer = embeddings.buffer;
  from.offset = embeddings.offset;
  from.size = bytes;
  work->start({.input = {}, .embeddings = from, .tokens = tokens}, options);
  return work;
}

EmbeddingTask::EmbeddingTask(TextEncoder& encoder, const std::string& text,
                             const EmbedOptions& options)
    : EmbeddingTask(of_text(encoder, text, options)) {}

EmbeddingTask::EmbeddingTask(TextEncoder& encoder, const ApplicationBuffer& embeddings,
                             uint32_t tokens, const EmbedOptions& options)
    : EmbeddingTask(of_embeddings(encoder, embeddings, tokens, options)) {}

EmbeddingTask::EmbeddingTask(std::unique_ptr<Work> work)
    : FrameTask(std::make_unique<Impl>(work->encoder->device, work->encoder,
                                       std::move(work->started), work->encoder->model)),
      work_(std::move(work)) {}

EmbeddingTask::~EmbeddingTask() = default;

uint32_t EmbeddingTask::tokens() const { return work_->pass->tokens(); }

bool EmbeddingTask::recorded() const {
  return impl_->run.stages_recorded() == work_->pass->stages();
}

void EmbeddingTask::require_recorded() const {
  impl_->device->require_alive();
  if (!recorded())
    throw SettingError("EmbeddingTask", "has slices that were not recorded yet",
                       "record copies when recorded() says so");
}

void EmbeddingTask::record_vector(VkCommandBuffer commands, const ApplicationBuffer& to) {
  require_recorded();
  record_copy(impl_->device->vk(), commands, impl_->device->queue_family(), work_->pass->vector(),
              to, "a vector");
}

void EmbeddingTask::record_states(VkCommandBuffer commands, const ApplicationBuffer& to) {
  require_recorded();
  record_copy(impl_->device->vk(), commands, impl_->device->queue_family(), work_->pass->states(),
              to, "states");
}

TextVector EmbeddingTask::result() {
  if (!done())
    throw SettingError("EmbeddingTask", "is not done", "ask for its result when done() says so");
  TextVector result = {.tokens = tokens(), .truncated = work_->truncated};
  if (!recorded()) return result;  // the task was cancelled
  result.values = work_->pass->values();
  if (!std::ranges::all_of(result.values, [](float value) { return std::isfinite(value); }))
    throw ModelError("vector of a text", "holds NaN or infinity",
                     "TextEncoder::embed() says where it comes from");
  result.complete = true;
  return result;
}

}  // namespace mulciber
