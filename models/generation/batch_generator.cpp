#include "mulciber/batch_generator.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "models/adapters/adapters.h"
#include "models/generation/batch_generator_impl.h"
#include "models/generation/text_scoring.h"
#include "mulciber/error.h"
#include "runtime/public_devices.h"

namespace mulciber {

BatchGenerator::BatchGenerator(std::shared_ptr<Device> device,
                               std::shared_ptr<const OpenModel> model,
                               const BatchGeneratorOptions& options)
    : impl_(std::make_unique<Impl>()) {
  const auto start = Clock::now();
  impl_->start(given(std::move(device), "BatchGenerator"), std::move(model), options);
  impl_->statistics.load_seconds = seconds_since(start);
}

BatchGenerator::~BatchGenerator() = default;
BatchGenerator::BatchGenerator(BatchGenerator&&) noexcept = default;
BatchGenerator& BatchGenerator::operator=(BatchGenerator&&) noexcept = default;

uint64_t BatchGenerator::submit(BatchRequest request) { return impl_->submit(std::move(request)); }

void BatchGenerator::cancel(uint64_t request) {
  for (const Impl::Sequence& sequence : impl_->waiting)
    if (sequence->number == request) sequence->cancelled = true;
  for (const Impl::Slot& slot : impl_->by_slot)
    if (slot.sequence && slot.sequence->number == request) slot.sequence->cancelled = true;
}

bool BatchGenerator::step() { return impl_->step(); }

std::optional<TokenAttention> BatchGenerator::attention(std::span<const uint32_t> ids,
                                                        const BatchAttentionOptions& options) {
  return impl_->attention(ids, options);
}

size_t BatchGenerator::running() const {
  return static_cast<size_t>(std::ranges::count_if(
      impl_->by_slot, [](const Impl::Slot& slot) { return slot.sequence != nullptr; }));
}
size_t BatchGenerator::waiting() const { return impl_->waiting.size(); }

TextScores BatchGenerator::score(std::span<const ScoreInput> inputs, const ScoreOptions& options) {
  TextScores scores = score_texts({*impl_, impl_->context, impl_->scorer}, inputs, options);
  impl_->statistics.peak_device_bytes = impl_->device->memory().peak();
  return scores;
}

size_t BatchGenerator::count_tokens(const std::string& prompt, bool add_special,
                                    bool parse_special) const {
  return impl_->encode(prompt, add_special, parse_special).size();
}

std::vector<uint32_t> BatchGenerator::tokens(const std::string& text, bool add_special,
                                             bool parse_special) const {
  const std::vector<int32_t> ids = impl_->encode(text, add_special, parse_special);
  return {ids.begin(), ids.end()};
}

std::string BatchGenerator::text(std::span<const uint32_t> ids) const {
  for (const uint32_t id : ids) impl_->check_id(id);
  TokenStream stream(*impl_->tokenizer, {});
  std::string text;
  for (const uint32_t id : ids) text += stream.push(static_cast<int32_t>(id));
  return text + stream.finish();
}

std::string BatchGenerator::token_text(uint32_t id) const { return impl_->token_text(id); }

std::optional<std::string> BatchGenerator::chat_prompt(
    std::span<const ChatMessage> messages) const {
  const std::shared_ptr<const ChatTemplate>& chat_template = impl_->opened->chat_template();
  if (!chat_template) return std::nullopt;
  return chat_template->render(messages);
}

Sampling BatchGenerator::default_sampling() const {
  return impl_->default_sampling(impl_->context);
}
const BatchGeneratorStatistics& BatchGenerator::statistics() const { return impl_->statistics; }
std::vector<std::string> BatchGenerator::adapters() const {
  return adapter_names(impl_->language->network());
}
uint32_t BatchGenerator::context() const { return impl_->context; }
uint32_t BatchGenerator::vocabulary() const { return impl_->language->network().vocabulary; }
std::string BatchGenerator::family() const { return impl_->model->family(); }

}  // namespace mulciber
