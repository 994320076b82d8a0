#include "mulciber/text_generator.h"
#include "base/clock.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "models/adapters/adapters.h"
#include "models/core/vocabulary_check.h"
#include "models/generation/context_shift.h"
#include "models/generation/generator_options.h"
#include "models/generation/saved_sequence.h"
#include "models/generation/sequence_decoding.h"
#include "models/generation/text_generator_impl.h"
#include "runtime/public_devices.h"
#include "text/token_stream.h"

namespace mulciber {

std::vector<int32_t> TextGenerator::Impl::tokens(const std::string& prompt,
                                                 const GenerateOptions& options) const {
  return tokenizer->encode(
      expand_prompt(*opened, prompt, options.images),
      {.add_special = options.add_special, .parse_special = options.parse_special});
}

uint32_t TextGenerator::Impl::kept(std::span<const int32_t> prompt,
                                   const GenerateOptions& options) const {
  if (uint64_t{options.keep} + kLeastShiftRoom > context)
    throw SettingError(
        "keep", fmt::format("is {} of a context of {} tokens", options.keep, context),
        fmt::format("leave room for {}, or ask for a larger context", kLeastShiftRoom));
  const std::vector<int32_t> nothing = tokens("", options);
  const auto added = std::ranges::mismatch(nothing, prompt).in1 - nothing.begin();
  return static_cast<uint32_t>(
      std::min<size_t>(std::max<size_t>(options.keep, static_cast<size_t>(added)), prompt.size()));
}

std::vector<int32_t> TextGenerator::Impl::encode(const std::string& prompt,
                                                 const GenerateOptions& options) const {
  if (!options.prompt_ids.empty()) return given_prompt(options.prompt_ids, options.shift);
  std::vector<int32_t> ids = tokens(prompt, options);
  check_prompt(ids.size(), options.shift);
  return ids;
}

std::vector<int32_t> TextGenerator::Impl::given_prompt(std::span<const uint32_t> ids,
                                                       bool shift) const {
  for (const uint32_t id : ids) check_id(id);
  check_prompt(ids.size(), shift);
  return {ids.begin(), ids.end()};
}

void TextGenerator::Impl::check_prompt(size_t tokens, bool shift) const {
  slots->require_free();
  if (tokens == 0) throw ModelError("prompt", "has no tokens", "give some text");
  if (tokens >= context && !shift) refuse_prompt(tokens);
}

void TextGenerator::Impl::refuse_prompt(size_t tokens) const {
  throw ModelError(
      "prompt",
      fmt::format("has {} tokens, which leaves no room in a context of {}", tokens, context),
      "give a shorter text, ask for a larger context, or let it go on without the oldest tokens");
}

SequenceRequest TextGenerator::Impl::request(const GenerateOptions& options,
                                             std::span<const int32_t> prompt) const {
  SequenceRequest request;
  request.sampling = checked(options.sampling.value_or(default_sampling()));
  request.stream = options.stream;
  request.max_new_tokens = options.max_new_tokens;
  request.stop = options.stop;
  request.ignore_end = options.ignore_end;
  request.reuse_completions = true;
  request.biases = checked_biases(options.logit_bias, language->network().vocabulary);
  request.log_probabilities = options.log_probabilities;
  request.adapters = chosen_adapters(language->network(), options.adapters);
  request.grammar = options.grammar;
  request.shift = options.shift;
  if (options.shift) request.keep = kept(prompt, options);
  request.steps_per_submission = options.steps_per_submission;
  if (!options.attention) return request;
  check_attention(prompt.size() + std::max(options.max_new_tokens, 1u));
  // The maps of the completion can be kept.
  const uint32_t most = most_attention_tokens() - static_cast<uint32_t>(prompt.size());
  request.max_new_tokens =
      options.max_new_tokens > 0 ? std::min(options.max_new_tokens, most) : most;
  return request;
}

void TextGenerator::Impl::run(std::span<Asked> asked, const GenerateOptions& options) {
  const auto start = Clock::now();
  const BatchGeneratorStatistics before = statistics;
  counts = {.load_seconds = counts.load_seconds,
            .weight_bytes = counts.weight_bytes,
            .predicted_device_bytes = counts.predicted_device_bytes};
  std::exception_ptr failed;
  size_t running = asked.size();
  std::vector<uint64_t> numbers;
  const auto look = [&] {
    if (!options.cancel || !options.cancel->load()) return;
    for (const uint64_t number : numbers) cancel(number);
  };
  std::optional<double> prefilled;  // prefill_seconds when the first token is known
  try {
    for (Asked& one : asked) {
      SequenceRequest& request = one.request;
      request.on_token = [&, told = std::move(request.on_token)](const BatchToken& token) {
        if (counts.first_token_seconds == 0) counts.first_token_seconds = seconds_since(start);
        if (told) told(token);
        look();
      };
      request.on_end = [&, told = std::move(request.on_end)](Generation found,
                                                             std::string_view last) {
        if (told) told(found, last);
        one.found = std::move(found);
        --running;
      };
      request.on_error = [&](std::exception_ptr error) {
        failed = std::move(error);
        --running;
      };
      numbers.push_back(submit(std::move(request), one.prompt, options.images));
    }
    look();
    while (running > 0 && !failed) {
      step();
      look();
      if (!prefilled && counts.first_token_seconds > 0) prefilled = statistics.prefill_seconds;
    }
    if (failed) std::rethrow_exception(failed);
  } catch (...) {
    waiting.clear();
    for (uint32_t slot = 0; slot < by_slot.size(); ++slot)
      if (by_slot[slot].sequence) leave(slot, false);
    throw;
  }
  const BatchGeneratorStatistics& now = statistics;
  counts.prompt_tokens = now.prompt_tokens - before.prompt_tokens;
  counts.reused_tokens = now.reused_tokens - before.reused_tokens;
  counts.new_tokens = now.new_tokens - before.new_tokens;
  counts.decode_steps = static_cast<uint32_t>(now.steps - before.steps);
  counts.draft_tokens = now.draft_tokens - before.draft_tokens;
  counts.accepted_tokens = now.accepted_tokens - before.accepted_tokens;
  counts.images = now.images - before.images;
  counts.image_seconds = now.image_seconds - before.image_seconds;
  counts.build_seconds = now.build_seconds - before.build_seconds;
  counts.prefill_seconds = now.prefill_seconds - before.prefill_seconds;
  counts.decode_seconds = now.decode_seconds - before.decode_seconds;
  if (options.shift) {
    // What comes behind the first token is computed again.
    const double again = now.prefill_seconds - prefilled.value_or(now.prefill_seconds);
    counts.prefill_seconds -= again;
    counts.decode_seconds += again;
  }
  counts.peak_device_bytes = device->memory().peak();
  counts.step_bytes = slots->step_program().work().bytes;
}

std::vector<uint32_t> TextGenerator::Impl::read_ids(const Generation& generation) const {
  std::vector<uint32_t> ids = generation.prompt_ids;
  ids.insert(ids.end(), generation.ids.begin(), generation.ids.end());
  // The id that filled the context was chosen, but never read.
  ids.resize(std::min<size_t>(ids.size(), context));
  return ids;
}

TokenAttention TextGenerator::Impl::attention(const Generation& generation,
                                              std::span<const float> adapters) {
  const auto start = Clock::now();
  const std::vector<uint32_t> ids = read_ids(generation);
  const Extents extents = model->extents();
  TokenAttention result = {.layers = extents.decoder_layers,
                           .heads = extents.decoder_heads,
                           .length = static_cast<uint32_t>(ids.size()),
                           .weights = language->attention(ids, adapters),
                           .windows = {},
                           .tokens = {}};
  for (const CausalLayer& layer : language->network().decoder.layers)
    result.windows.push_back(layer.attention.window);
  for (const uint32_t id : ids)
    result.tokens.push_back(mulciber::token_text(*tokenizer, static_cast<int32_t>(id)));
  counts.attention_seconds += seconds_since(start);
  return result;
}

MemoryPrediction TextGenerator::predict(Device& device, const OpenModel& model,
                                        const GeneratorOptions& options) {
  model.require(Capability::kContinueText);
  const Architecture& architecture = model.architecture();
  return architecture.predict(device.capabilities(),
                              model_options(options, architecture.extents().context));
}

MemoryPrediction TextGenerator::predict(Device& device, const std::string& path,
                                        const GeneratorOptions& options) {
  return predict(device, *open_model(path), options);
}

void TextGenerator::Impl::start(std::shared_ptr<const OpenModel> files,
                                const GeneratorOptions& options,
                                std::shared_ptr<WeightsLoad> weights) {
  const ModelOptions loading = load(std::move(files), options, std::move(weights));
  const DecoderNetwork& network = language->network();
  open_slots(
      conversation_slots(device->capabilities(), network, loading.sequences, loading.context),
      std::nullopt);
  const MemoryPrediction& plan = language->memory_plan();
  counts.predicted_device_bytes = plan.weight_bytes + plan.context_bytes;
  counts.weight_bytes = model->weight_bytes();
}

TextGenerator::TextGenerator(std::shared_ptr<Device> device, const std::string& path,
                             const GeneratorOptions& options)
    : impl_(std::make_shared<Impl>(given(std::move(device), "TextGenerator"))) {
  const auto start = Clock::now();
  impl_->start(open_model(path), options);
  impl_->counts.load_seconds = seconds_since(start);
}

TextGenerator::TextGenerator(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                             const GeneratorOptions& options)
    : impl_(std::make_shared<Impl>(given(std::move(device), "TextGenerator"))) {
  const auto start = Clock::now();
  impl_->start(std::move(model), options);
  impl_->counts.load_seconds = seconds_since(start);
}

TextGenerator::TextGenerator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

TextGenerator TextGenerator::conversation(uint32_t context) const {
  if (context > impl_->context)
    throw SettingError("context", fmt::format("is {} of {} tokens", context, impl_->context),
                       "load the model with a larger one");
  auto impl = std::make_shared<Impl>(static_cast<const SharedGenerator&>(*impl_));
  const DecoderNetwork& network = impl->language->network();
  const SlotShape shape =
      conversation_slots(impl->device->capabilities(), network, impl_->slots->shape().slots,
                         context > 0 ? context : impl_->context);
  impl->open_slots(shape, 0);
  impl->counts.weight_bytes = impl_->counts.weight_bytes;
  impl->counts.predicted_device_bytes =
      SequenceSlots::predict_bytes(impl->device->capabilities(), network, shape);
  return TextGenerator(std::move(impl));
}

TextGenerator::~TextGenerator() = default;
TextGenerator::TextGenerator(TextGenerator&&) noexcept = default;
TextGenerator& TextGenerator::operator=(TextGenerator&&) noexcept = default;

void TextGenerator::Impl::check_draft(const Impl& draft) {
  const auto refuse = [](std::string problem, const char* remedy) {
    throw ModelError("draft model", std::move(problem), remedy);
  };
  if (&draft == this)
    refuse("is the model itself", "take a smaller one, or TextGenerator::conversation()");
  if (draft.slots->shape().slots != 1)
    refuse("was loaded for several texts", "load it with GeneratorOptions::sequences of 1");
  draft.slots->require_free();
  if (draft.tokenizer == tokenizer || draft.tokenizer == checked_draft) return;
  check_same_tokens(*tokenizer, *draft.tokenizer);
  checked_draft = draft.tokenizer;
}

void TextGenerator::Impl::check_drafts(const GenerateOptions& options) {
  if (options.prompt_lookup == 0 && !options.draft) return;
  const char* const what = "GenerateOptions::prompt_lookup and draft";
  if (slots->shape().slots != 1)
    throw SettingError(what, "are asked for of a model loaded for several texts",
                       "leave one of them out");
  if (!slots->can_draft() || (options.draft && !options.draft->impl_->slots->can_draft()))
    throw SettingError(what,
                       "are asked for of a model whose layers keep a state, which cannot be taken "
                       "back when a draft token is rejected",
                       "leave them out, and take a draft model with attention");
  if (options.draft_tokens > kMostDraftTokens)
    throw SettingError("GenerateOptions::draft_tokens", fmt::format("is {}", options.draft_tokens),
                       fmt::format("ask for at most {}", kMostDraftTokens));
  if (options.draft) check_draft(*options.draft->impl_);
}

Generation TextGenerator::generate(const std::string& prompt, const GenerateOptions& options) {
  Impl& impl = *impl_;
  impl.check_images(options);
  std::vector<int32_t> ids = impl.encode(prompt, options);
  impl.check_drafts(options);
  if (options.shift && options.attention)
    throw SettingError("GenerateOptions::shift", "is asked for together with attention",
                       "attention is kept of texts that fit the context");
  Impl::Asked asked = {.prompt = ids, .request = impl.request(options, ids), .found = {}};
  SequenceRequest& request = asked.request;
  request.prompt_lookup = options.prompt_lookup;
  request.draft = options.draft != nullptr;
  request.draft_tokens = options.draft_tokens;
  request.on_prompt = options.on_prompt;
  const auto show = [&](std::string_view piece) {
    if (options.on_text && !piece.empty()) options.on_text(piece);
  };
  request.on_token = [&](const BatchToken& token) {
    if (options.on_token) options.on_token(token);
    show(token.piece);
  };
  request.on_end = [&](const Generation&, std::string_view last) { show(last); };
  const std::vector<float> adapters = request.adapters;
  if (options.draft) {
    const Impl& draft = *options.draft->impl_;
    impl.draft_model = std::make_shared<BatchDraft>(draft, draft.slots);
  }
  try {
    impl.run({&asked, 1}, options);
  } catch (...) {
    impl.draft_model.reset();
    throw;
  }
  impl.draft_model.reset();
  Generation result = std::move(asked.found).value();
  if (options.attention) result.attention = impl.attention(result, adapters);
  return result;
}

size_t TextGenerator::count_tokens(const std::string& prompt,
                                   const GenerateOptions& options) const {
  return impl_->tokens(prompt, options).size();
}

std::vector<uint32_t> TextGenerator::tokens(const std::string& prompt,
                                            const GenerateOptions& options) const {
  const std::vector<int32_t> ids = impl_->tokens(prompt, options);
  return {ids.begin(), ids.end()};
}

std::string TextGenerator::text(std::span<const uint32_t> ids) const { return impl_->text(ids); }

std::string TextGenerator::token_text(uint32_t id) const { return impl_->token_text(id); }

void TextGenerator::Impl::check_all(const GenerateOptions& options) {
  if (!options.images.empty())
    throw SettingError("GenerateOptions::images", "are given to generate_all()",
                       "generate() such texts one by one");
  if (options.shift)
    throw SettingError("GenerateOptions::shift", "is asked for with generate_all()",
                       "continue such texts one by one");
  if (!options.prompt_ids.empty())
    throw SettingError("GenerateOptions::prompt_ids", "are given to generate_all()",
                       "give it lists of ids in place of texts");
}

std::vector<Generation> TextGenerator::Impl::run_all(std::vector<std::vector<int32_t>> prompts,
                                                     const GenerateOptions& options) {
  std::vector<Asked> asked;
  for (std::vector<int32_t>& ids : prompts) {
    SequenceRequest one = request(options, ids);
    one.stream += static_cast<uint32_t>(asked.size());
    one.reuse_completions = false;  // a completion does not depend on those beside it
    asked.push_back({.prompt = std::move(ids), .request = std::move(one), .found = {}});
  }
  run(asked, options);
  const std::vector<float> adapters = chosen_adapters(language->network(), options.adapters);
  std::vector<Generation> results;
  for (Asked& one : asked) {
    results.push_back(std::move(one.found).value());
    if (options.attention) results.back().attention = attention(results.back(), adapters);
  }
  return results;
}

std::vector<Generation> TextGenerator::generate_all(std::span<const std::string> prompts,
                                                    const GenerateOptions& options) {
  Impl::check_all(options);
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& prompt : prompts) ids.push_back(impl_->encode(prompt, options));
  return impl_->run_all(std::move(ids), options);
}

std::vector<Generation> TextGenerator::generate_all(std::span<const std::vector<uint32_t>> prompts,
                                                    const GenerateOptions& options) {
  Impl::check_all(options);
  std::vector<std::vector<int32_t>> ids;
  for (const std::vector<uint32_t>& prompt : prompts)
    ids.push_back(impl_->given_prompt(prompt, false));
  return impl_->run_all(std::move(ids), options);
}

uint64_t TextGenerator::Impl::cache_fingerprint() const {
  return fingerprint_with(fingerprint, slots->state().adapter_scales(0));
}

SavedSequence TextGenerator::Impl::save() const {
  slots->require_free();
  std::vector<uint32_t> prompt = left.ids;
  prompt.push_back(0);  // the last token of a prompt is never in the cache
  slots->begin(
      0, {.prompt = prompt, .identity = left.identity, .exact = false, .adapters = left.adapters});
  SavedSequence saved = slots->save(0);
  slots->end(0, true);
  return saved;
}

size_t TextGenerator::Impl::restore(const SavedSequence& saved) {
  slots->restore(0, saved, left.adapters);
  left.ids = saved.ids;
  left.identity.clear();
  return saved.ids.size();
}

void TextGenerator::save_cache(const std::string& file) const {
  const SavedSequence saved = impl_->save();
  save_sequence(file, saved, impl_->cache_fingerprint());
}

size_t TextGenerator::load_cache(const std::string& file) {
  return impl_->restore(load_sequence(file, impl_->cache_fingerprint()));
}

std::vector<std::byte> TextGenerator::save_cache() const {
  const SavedSequence saved = impl_->save();
  return sequence_bytes(saved, impl_->cache_fingerprint());
}

size_t TextGenerator::load_cache(std::span<const std::byte> bytes) {
  return impl_->restore(read_sequence(bytes, impl_->cache_fingerprint()));
}

std::optional<std::string> TextGenerator::chat_prompt(std::span<const ChatMessage> messages) const {
  const std::shared_ptr<const ChatTemplate>& chat_template = impl_->opened->chat_template();
  if (!chat_template) return std::nullopt;
  return chat_template->render(messages);
}

Sampling TextGenerator::default_sampling() const { return impl_->default_sampling(); }
const GenerateStatistics& TextGenerator::statistics() const { return impl_->counts; }
GeneratorDescription TextGenerator::describe() const { return impl_->describe(); }
uint32_t TextGenerator::context() const { return impl_->context; }
std::vector<std::string> TextGenerator::adapters() const {
  return adapter_names(impl_->language->network());
}
uint32_t TextGenerator::vocabulary() const { return impl_->language->network().vocabulary; }
uint32_t TextGenerator::width() const {
  return static_cast<uint32_t>(impl_->language->network().embedding.table.shape.columns());
}
std::string TextGenerator::family() const { return impl_->model->family(); }
const std::shared_ptr<Device>& TextGenerator::device() const { return impl_->device; }
uint64_t TextGenerator::trim() { return impl_->trim(); }

}  // namespace mulciber
