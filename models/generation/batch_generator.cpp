#include "mulciber/batch_generator.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/adapters/adapters.h"
#include "models/generation/generation_batch.h"
#include "models/generation/generator_options.h"
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

uint64_t BatchGenerator::submit(BatchRequest request) {
  Impl& impl = *impl_;
  std::vector<int32_t> ids(request.prompt_ids.begin(), request.prompt_ids.end());
  if (ids.empty())
    ids = impl.encode(expand_prompt(*impl.opened, request.prompt, request.images),
                      request.add_special, request.parse_special);
  if (ids.empty()) throw ModelError("prompt", "has no tokens", "give some text");
  if (ids.size() >= impl.context)
    throw ModelError("prompt",
                     fmt::format("has {} tokens, which leaves no room in a context of {}",
                                 ids.size(), impl.context),
                     "give a shorter text, or ask for a larger context");
  const DecoderNetwork& network = impl.language->network();
  SequenceRequest asked;
  asked.sampling = checked(request.sampling.value_or(default_sampling()));
  asked.stream = request.stream;
  asked.max_new_tokens = request.max_new_tokens;
  asked.stop = std::move(request.stop);
  asked.ignore_end = request.ignore_end;
  asked.reuse_completions = request.reuse_completions;
  asked.biases = checked_biases(request.logit_bias, network.vocabulary);
  asked.adapters = chosen_adapters(network, request.adapters);
  asked.grammar = std::move(request.grammar);
  asked.prompt_lookup = request.prompt_lookup;
  asked.draft = request.draft && impl.draft_model != nullptr;
  asked.draft_tokens = request.draft_tokens;
  asked.log_probabilities = request.log_probabilities;
  asked.on_prompt = std::move(request.on_prompt);
  asked.on_token = std::move(request.on_token);
  if (request.on_end)
    asked.on_end = [ended = std::move(request.on_end)](
                       const Generation& found, std::string_view last) { ended(found, last); };
  if (request.on_error)
    asked.on_error = [failed = std::move(request.on_error)](const std::exception_ptr& error) {
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& reason) {
        failed(reason);
      }
    };
  return impl.submit(std::move(asked), std::move(ids), request.images);
}

void BatchGenerator::cancel(uint64_t request) { impl_->cancel(request); }

uint64_t BatchGenerator::trim() { return impl_->trim(); }

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

std::string BatchGenerator::text(std::span<const uint32_t> ids) const { return impl_->text(ids); }

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
GeneratorDescription BatchGenerator::describe() const { return impl_->describe(); }
std::vector<std::string> BatchGenerator::adapters() const {
  return adapter_names(impl_->language->network());
}
uint32_t BatchGenerator::context() const { return impl_->context; }
uint32_t BatchGenerator::vocabulary() const { return impl_->language->network().vocabulary; }
std::string BatchGenerator::family() const { return impl_->model->family(); }

}  // namespace mulciber
