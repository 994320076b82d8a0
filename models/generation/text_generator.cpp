#include "mulciber/text_generator.h"
#include "base/clock.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "models/adapters/adapters.h"
#include "models/core/vocabulary_check.h"
#include "models/generation/completion.h"
#include "models/generation/completion_grammar.h"
#include "models/generation/context_shift.h"
#include "models/generation/generator_options.h"
#include "models/generation/saved_sequence.h"
#include "models/generation/text_generator_impl.h"
#include "runtime/public_devices.h"
#include "text/token_stream.h"

namespace mulciber {

void TextGenerator::Impl::begin_count() {
  const GenerateStatistics& s = statistics;
  statistics = {.load_seconds = s.load_seconds,
                .weight_bytes = s.weight_bytes,
                .predicted_device_bytes = s.predicted_device_bytes};
}

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
  batch->require_free();
  std::vector<int32_t> ids = tokens(prompt, options);
  if (ids.empty()) throw ModelError("prompt", "has no tokens", "give some text");
  if (ids.size() >= context && !options.shift) refuse_prompt(ids.size());
  return ids;
}

void TextGenerator::Impl::refuse_prompt(size_t tokens) const {
  throw ModelError(
      "prompt",
      fmt::format("has {} tokens, which leaves no room in a context of {}", tokens, context),
      "give a shorter text, ask for a larger context, or let it go on without the oldest tokens");
}

SequenceRequest TextGenerator::Impl::request(const GenerateOptions& options) const {
  SequenceRequest request;
  const uint32_t rows = batch->shape().rows;
  request.prompts.resize(rows);
  request.sampling.assign(rows, checked(options.sampling.value_or(default_sampling())));
  request.streams.assign(rows, 0);
  request.adapters = chosen_adapters(language->network(), options.adapters);
  request.max_new_tokens =
      options.max_new_tokens > 0 ? std::min(options.max_new_tokens, context) : context;
  if (!options.ignore_end) request.stops = ends;
  request.steps_per_submission = options.steps_per_submission;
  return request;
}

void TextGenerator::Impl::set_grammars(SequenceRequest& request, const GenerateOptions& options,
                                       uint32_t texts,
                                       std::vector<CompletionGrammar>& grammars) const {
  if (!options.grammar) return;
  for (uint32_t row = 0; row < texts; ++row)
    grammars.push_back(completion_grammar(*options.grammar, options.ignore_end));
  request.grammars.assign(batch->shape().rows, nullptr);
  for (uint32_t row = 0; row < texts; ++row) request.grammars[row] = &grammars[row];
}

void TextGenerator::Impl::bound_attention(SequenceRequest& request, size_t prompt,
                                          const GenerateOptions& options) const {
  const uint32_t most = most_attention_tokens();
  check_attention(prompt + std::max(options.max_new_tokens, 1u));
  request.max_new_tokens = std::min(request.max_new_tokens, most - static_cast<uint32_t>(prompt));
}

uint32_t TextGenerator::Impl::reuse(SequenceRequest& request, const std::vector<uint32_t>& ids,
                                    std::span<const uint32_t> identity) {
  batch->use_adapters(0, request.adapters);
  // The last token is fed again, because its logits are not kept.
  const std::vector<uint32_t> held = batch->identity();
  // A caller's embeddings are fed again, which may have changed, and so is everything where states
  // are asked for.
  const std::span<const uint32_t> told = identity.empty() ? ids : identity;
  const auto end =
      request.states ? told.begin() : std::find(told.begin(), told.end() - 1, kNoTokenId);
  const auto common = std::mismatch(told.begin(), end, held.begin(), held.end());
  batch->truncate(0, static_cast<uint32_t>(common.first - told.begin()));
  const uint32_t reused = batch->length(0);
  request.prompts[0].assign(ids.begin() + reused, ids.end());
  request.identity.assign(told.begin() + reused, told.end());
  return reused;
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
  statistics.attention_seconds += seconds_since(start);
  return result;
}

void TextGenerator::Impl::count(const SequenceResult& found) {
  GenerateStatistics& s = statistics;
  s.decode_steps += found.steps;
  s.build_seconds += found.build_seconds;
  s.prefill_seconds += found.prefill_seconds;
  s.decode_seconds += found.decode_seconds;
  if (s.first_token_seconds == 0) s.first_token_seconds = found.first_token_seconds;
  s.peak_device_bytes = device->memory().peak();
  s.step_bytes = batch->step().work().bytes;
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
  context = loading.context;
  batch = std::make_shared<SequenceBatch>(*device, language->network(),
                                          BatchShape{loading.sequences, context}, std::nullopt);
  const MemoryPrediction& plan = language->memory_plan();
  statistics.predicted_device_bytes = plan.weight_bytes + plan.context_bytes;
  statistics.weight_bytes = model->weight_bytes();
}

TextGenerator::TextGenerator(std::shared_ptr<Device> device, const std::string& path,
                             const GeneratorOptions& options)
    : impl_(std::make_shared<Impl>(given(std::move(device), "TextGenerator"))) {
  const auto start = Clock::now();
  impl_->start(open_model(path), options);
  impl_->statistics.load_seconds = seconds_since(start);
}

TextGenerator::TextGenerator(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                             const GeneratorOptions& options)
    : impl_(std::make_shared<Impl>(given(std::move(device), "TextGenerator"))) {
  const auto start = Clock::now();
  impl_->start(std::move(model), options);
  impl_->statistics.load_seconds = seconds_since(start);
}

TextGenerator::TextGenerator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

TextGenerator TextGenerator::conversation(uint32_t context) const {
  if (context > impl_->context)
    throw SettingError("context", fmt::format("is {} of {} tokens", context, impl_->context),
                       "load the model with a larger one");
  auto impl = std::make_shared<Impl>(static_cast<const SharedGenerator&>(*impl_));
  impl->context = context > 0 ? context : impl_->context;
  const DecoderNetwork& network = impl->language->network();
  const BatchShape shape = {impl_->batch->shape().rows, impl->context};
  impl->statistics.weight_bytes = impl_->statistics.weight_bytes;
  impl->statistics.predicted_device_bytes =
      SequenceBatch::predict_bytes(impl->device->capabilities(), network, shape);
  impl->batch = std::make_shared<SequenceBatch>(*impl->device, network, shape);
  return TextGenerator(std::move(impl));
}

TextGenerator::~TextGenerator() = default;
TextGenerator::TextGenerator(TextGenerator&&) noexcept = default;
TextGenerator& TextGenerator::operator=(TextGenerator&&) noexcept = default;

Generation TextGenerator::generate(const std::string& prompt, const GenerateOptions& options) {
  Impl& impl = *impl_;
  impl.check_images(options);
  ShownPrompt shown = impl.show(impl.encode(prompt, options), options.images);
  const std::vector<int32_t>& encoded = shown.ids;
  if (options.prompt_lookup > 0 || options.draft) return impl.speculate(encoded, options);
  std::vector<uint32_t> all(encoded.begin(), encoded.end());  // prompt and completion
  for (const ShownTile& tile : shown.tiles)
    std::fill_n(all.begin() + tile.first, tile.count, kNoTokenId);
  if (options.shift && options.attention)
    throw SettingError("GenerateOptions::shift", "is asked for together with attention",
                       "attention is kept of texts that fit the context");
  const uint32_t keep = options.shift ? impl.kept(encoded, options) : 0;

  Completion completion(*impl.tokenizer, encoded, options.stop, options.on_text);
  std::atomic<bool> stop{false};
  bool cancelled = false;
  const auto look = [&] {
    if (options.cancel && options.cancel->load()) stop = cancelled = true;
  };
  SequenceRequest request = impl.request(options);
  if (options.attention) impl.bound_attention(request, encoded.size(), options);
  std::vector<CompletionGrammar> grammars;
  impl.set_grammars(request, options, 1, grammars);
  request.cancel = &stop;
  request.on_prompt = [&](size_t done, size_t total) {
    look();
    if (options.on_prompt) options.on_prompt(done, total);
  };
  request.on_token = [&](uint32_t, uint32_t id) {
    look();
    if (stop) return;
    all.push_back(id);
    if (!completion.push(id, std::ranges::binary_search(request.stops, id))) stop = true;
  };
  // A request that asks for more than there is room for ends because the context is full.
  const uint64_t most = options.max_new_tokens > 0 ? options.max_new_tokens : UINT64_MAX;
  impl.begin_count();
  SequenceEnd end = SequenceEnd::kFull;
  size_t gone = 0;
  while (true) {
    const std::vector<uint32_t> ids = options.shift ? shifted(all, keep, impl.context) : all;
    gone = all.size() - ids.size();
    const uint32_t reused = impl.reuse(request, ids, shown.identity);
    impl.give_images(request, shown.tiles, reused, options.cancel);
    look();
    const size_t before = all.size();
    if (options.shift)
      request.max_new_tokens = static_cast<uint32_t>(
          std::min<uint64_t>(most - (before - encoded.size()), uint64_t{impl.context} + 1));
    SequenceResult found = impl.batch->generate(request);
    end = found.rows[0].end;
    // The device may have run past a stop text: the batch is cut to the end of the completion that
    // was given.
    impl.batch->truncate(0, static_cast<uint32_t>(ids.size() + all.size() - before));
    if (before == encoded.size()) {
      impl.statistics.prompt_tokens = ids.size();
      impl.statistics.reused_tokens = reused;
    } else {
      found.decode_seconds += std::exchange(found.prefill_seconds, 0);
    }
    impl.count(found);
    if (!options.shift || stop || end != SequenceEnd::kFull || all.size() - encoded.size() >= most)
      break;
    request.on_prompt = [&](size_t, size_t) { look(); };
    // Random numbers follow from the number of tokens, which falls at a context shift.
    ++request.streams[0];
  }
  impl.statistics.new_tokens = all.size() - encoded.size();
  if (options.shift && end == SequenceEnd::kFull) end = SequenceEnd::kLimit;
  Generation result =
      completion.finish(end_of(end, options.max_new_tokens == 0 && !options.attention), cancelled);
  result.left_out = gone;
  if (options.attention) result.attention = impl.attention(result, request.adapters);
  return result;
}

size_t TextGenerator::count_tokens(const std::string& prompt,
                                   const GenerateOptions& options) const {
  return impl_->tokens(prompt, options).size();
}

std::string TextGenerator::token_text(uint32_t id) const { return impl_->token_text(id); }

std::vector<Generation> TextGenerator::generate_all(std::span<const std::string> prompts,
                                                    const GenerateOptions& options) {
  Impl& impl = *impl_;
  const uint32_t rows = impl.batch->shape().rows;
  if (!options.images.empty())
    throw SettingError("GenerateOptions::images", "are given to generate_all()",
                       "generate() such texts one by one");
  if (options.shift)
    throw SettingError("GenerateOptions::shift", "is asked for with generate_all()",
                       "continue such texts one by one");
  std::vector<std::vector<int32_t>> encoded;
  for (const std::string& prompt : prompts) encoded.push_back(impl.encode(prompt, options));
  std::vector<Generation> results;
  impl.begin_count();
  for (size_t first = 0; first < prompts.size(); first += rows) {
    const auto count = static_cast<uint32_t>(std::min<size_t>(rows, prompts.size() - first));
    SequenceRequest request = impl.request(options);
    request.cancel = options.cancel;
    std::vector<Completion> completions;
    std::vector<CompletionGrammar> grammars;
    impl.set_grammars(request, options, count, grammars);
    for (uint32_t row = 0; row < count; ++row) {
      const std::vector<int32_t>& ids = encoded[first + row];
      if (options.attention) impl.bound_attention(request, ids.size(), options);
      completions.emplace_back(*impl.tokenizer, ids, options.stop, nullptr);
      request.prompts[row].assign(ids.begin(), ids.end());
      request.streams[row] = static_cast<uint32_t>(first) + row;
      impl.batch->use_adapters(row, request.adapters);
      impl.batch->truncate(row, 0);
      impl.statistics.prompt_tokens += ids.size();
    }
    const SequenceResult found = impl.batch->generate(request);
    const bool cancelled = options.cancel && options.cancel->load();
    for (uint32_t row = 0; row < count; ++row) {
      for (const uint32_t id : found.rows[row].ids)
        completions[row].push(id, std::ranges::binary_search(request.stops, id));
      const bool open = cancelled && found.rows[row].end == SequenceEnd::kCancelled;
      results.push_back(completions[row].finish(
          end_of(found.rows[row].end, options.max_new_tokens == 0 && !options.attention), open));
      impl.statistics.new_tokens += results.back().ids.size();
      impl.batch->truncate(
          row, static_cast<uint32_t>(encoded[first + row].size() + results.back().ids.size()));
    }
    impl.count(found);
  }
  for (Generation& result : results) {
    if (options.attention)
      result.attention =
          impl.attention(result, chosen_adapters(impl.language->network(), options.adapters));
  }
  return results;
}

void TextGenerator::save_cache(const std::string& file) const {
  save_sequence(file, impl_->batch->save(0), impl_->cache_fingerprint());
}

size_t TextGenerator::load_cache(const std::string& file) {
  const SavedSequence saved = load_sequence(file, impl_->cache_fingerprint());
  impl_->batch->restore(0, saved);
  return saved.ids.size();
}

std::vector<std::byte> TextGenerator::save_cache() const {
  return sequence_bytes(impl_->batch->save(0), impl_->cache_fingerprint());
}

size_t TextGenerator::load_cache(std::span<const std::byte> bytes) {
  const SavedSequence saved = read_sequence(bytes, impl_->cache_fingerprint());
  impl_->batch->restore(0, saved);
  return saved.ids.size();
}

std::optional<std::string> TextGenerator::chat_prompt(std::span<const ChatMessage> messages) const {
  const std::shared_ptr<const ChatTemplate>& chat_template = impl_->opened->chat_template();
  if (!chat_template) return std::nullopt;
  return chat_template->render(messages);
}

Sampling TextGenerator::default_sampling() const { return impl_->default_sampling(); }
const GenerateStatistics& TextGenerator::statistics() const { return impl_->statistics; }
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

}  // namespace mulciber
