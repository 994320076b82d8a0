// Compiling pipelines before they are needed.
#include <algorithm>
#include <vector>

#include "models/encoding/text_encoder_impl.h"
#include "models/generation/generation_batch.h"
#include "models/generation/text_generator_impl.h"
#include "models/translation/translator_impl.h"
#include "models/vision/image_copies.h"
#include "mulciber/model_loader.h"
#include "runtime/pipeline.h"

namespace mulciber {

struct PipelineWarmup::Impl {
  std::shared_ptr<Device> device;
  std::shared_ptr<const void> model;
  std::vector<PipelineKey> keys;
  size_t done = 0;

  Impl(std::shared_ptr<Device> on, std::shared_ptr<const void> of, std::vector<PipelineKey> all)
      : device(std::move(on)), model(std::move(of)), keys(std::move(all)) {
    for (PipelineKey& key : keys) key.order = device->pipelines().order();
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
};

PipelineWarmup::PipelineWarmup(const Translator& translator, const TranslateOptions& options,
                               uint32_t source_tokens) {
  Translator::Impl& impl = *translator.impl_;
  const uint32_t most = impl.translation->max_source_tokens();
  impl_ = std::make_unique<Impl>(
      impl.device, translator.impl_,
      impl.translation->pipelines(source_tokens > 0 ? std::min(source_tokens, most) : most,
                                  impl.settings(options)));
}

PipelineWarmup::PipelineWarmup(const TextGenerator& generator)
    : impl_(std::make_unique<Impl>(generator.impl_->device, generator.impl_,
                                   generator.impl_->slots->pipelines())) {}

PipelineWarmup::PipelineWarmup(const BatchGenerator& generator)
    : impl_(std::make_unique<Impl>(generator.impl_->device, nullptr,
                                   generator.impl_->slots->pipelines())) {}

PipelineWarmup::PipelineWarmup(const TextEncoder& encoder, const EmbedOptions& options,
                               uint32_t tokens) {
  TextEncoder::Impl& impl = *encoder.impl_;
  const uint32_t most = impl.most_tokens();
  impl_ = std::make_unique<Impl>(
      impl.device, encoder.impl_,
      impl.encoder->pipelines(tokens > 0 ? std::min(tokens, most) : most, impl.output(options),
                              impl.normalizes(options)));
}

namespace {

/// Pipelines of passes, and of copies of their maps into images.
std::vector<PipelineKey> keys_of(const Device& device, AttentionPasses plan) {
  for (const PipelineKey& key : ImageCopies::pipelines(device.capabilities(), plan.largest))
    plan.keys.push_back(key);
  return std::move(plan.keys);
}

}  // namespace

PipelineWarmup PipelineWarmup::of_attention(const Translator& translator, uint32_t source_tokens,
                                            uint32_t target_tokens) {
  Translator::Impl& impl = *translator.impl_;
  const TranslationModel& model = *impl.translation;
  return PipelineWarmup(std::make_unique<Impl>(
      impl.device, translator.impl_,
      keys_of(*impl.device, model.plan_attention(
                                source_tokens > 0 ? source_tokens : model.max_source_tokens(),
                                target_tokens > 0 ? target_tokens : model.max_target_tokens()))));
}

PipelineWarmup PipelineWarmup::of_attention(const TextGenerator& generator, uint32_t tokens) {
  TextGenerator::Impl& impl = *generator.impl_;
  const uint32_t most = std::min(impl.context, impl.most_attention_tokens());
  return PipelineWarmup(std::make_unique<Impl>(
      impl.device, generator.impl_,
      keys_of(*impl.device,
              impl.language->plan_attention(tokens > 0 ? std::min(tokens, most) : most))));
}

PipelineWarmup::PipelineWarmup(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PipelineWarmup::~PipelineWarmup() = default;
PipelineWarmup::PipelineWarmup(PipelineWarmup&&) noexcept = default;
PipelineWarmup& PipelineWarmup::operator=(PipelineWarmup&&) noexcept = default;

size_t PipelineWarmup::total() const { return impl_->keys.size(); }
size_t PipelineWarmup::left() const { return impl_->keys.size() - impl_->done; }

size_t PipelineWarmup::prewarm(size_t count) {
  count = std::min(count, left());
  impl_->device->pipelines().prepare(std::span(impl_->keys).subspan(impl_->done, count));
  impl_->done += count;
  return left();
}

}  // namespace mulciber
