#include "mulciber/translator.h"
#include "base/clock.h"
#include "models/adapters/adapters.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include <fmt/format.h>

#include "models/core/batching.h"
#include "models/core/trim_memory.h"
#include "models/core/vocabulary_check.h"
#include "models/families/open_model.h"
#include "models/generation/language_tokens.h"
#include "models/translation/translator_impl.h"
#include "runtime/public_devices.h"

namespace mulciber {
namespace {

/// Adds the time of a scope to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += seconds_since(start_); }

 private:
  double& seconds_;
  Clock::time_point start_ = Clock::now();
};

GenerationSettings settings_of(const TranslationModel& model, uint32_t vocabulary,
                               const TranslateOptions& options) {
  GenerationSettings settings =
      generation_settings(model.generation_config(), model.max_target_tokens());
  if (options.beams) settings.beams = *options.beams;
  if (options.length_penalty) settings.length_penalty = *options.length_penalty;
  if (options.early_stopping)
    settings.early_stopping =
        *options.early_stopping ? EarlyStopping::kEarly : EarlyStopping::kHeuristic;
  if (options.max_new_tokens) settings.max_new_tokens = *options.max_new_tokens;
  settings.n_best = options.n_best;
  settings.banned.insert(settings.banned.end(), options.banned_tokens.begin(),
                         options.banned_tokens.end());
  for (const std::vector<uint32_t>& ids : options.banned_sequences) ban(settings, ids);
  check_settings(settings, vocabulary, model.max_target_tokens());
  return settings;
}

std::vector<SearchPlan> plan(const TranslationModel& model, std::span<const uint32_t> lengths,
                             const BatchBounds& bounds) {
  if (model.refills()) return plan_searches(lengths, bounds);
  std::vector<SearchPlan> searches;
  for (std::vector<size_t>& batch : plan_batches(lengths, bounds)) {
    const auto slots = static_cast<uint32_t>(batch.size());
    searches.push_back({std::move(batch), slots});
  }
  return searches;
}

void require_pairs(size_t sources, size_t targets) {
  if (sources != targets)
    throw ModelError("score", fmt::format("{} sources and {} targets", sources, targets),
                     "give one target for each source");
}

}  // namespace

std::vector<uint32_t> fed_ids(uint32_t start, const std::vector<uint32_t>& ids) {
  std::vector<uint32_t> fed = {start};
  fed.insert(fed.end(), ids.begin(), ids.end() - 1);
  return fed;
}

void take(Translation& result, const Alternative& best) {
  result.text = best.text;
  result.score = best.score;
  result.ids = best.ids;
  result.tokens = best.tokens;
}

GenerationSettings Translator::Impl::settings(const TranslateOptions& options) const {
  GenerationSettings settings = settings_of(*translation, model->extents().vocabulary, options);
  if (!options.target_language.empty()) {
    const LanguageToken token = language_token(*tokenizers.target, options.target_language);
    if (!token.before_source) settings.forced_bos = token.id;
  }
  return settings;
}

void Translator::Impl::check_head_masks(const HeadMasks& masks) const {
  const auto check = [](const std::vector<float>& factors, uint32_t layers, uint32_t heads,
                        const char* name) {
    if (factors.empty() || factors.size() == size_t{layers} * heads) return;
    throw ModelError(fmt::format("{} head mask", name),
                     fmt::format("has {} factors, the model has {} heads in all its layers",
                                 factors.size(), layers * heads),
                     "");
  };
  const Extents extents = model->extents();
  check(masks.encoder, extents.encoder_layers, extents.encoder_heads, "encoder");
  check(masks.decoder, extents.decoder_layers, extents.decoder_heads, "decoder");
  check(masks.cross, extents.cross_layers, extents.cross_heads, "cross");
}

Alternative Translator::Impl::alternative(const Hypothesis& hypothesis) const {
  return {.text = text_of_ids(*tokenizers.target, hypothesis.ids),
          .score = hypothesis.score,
          .ids = hypothesis.ids,
          .tokens = pieces_of(*tokenizers.target, hypothesis.ids)};
}

void Translator::Impl::finish(Translation& result, const std::vector<Hypothesis>& found) {
  const Stopwatch watch(statistics.tokenize_seconds);
  for (const Hypothesis& sequence : found) result.alternatives.push_back(alternative(sequence));
  result.complete = true;
  if (found.empty()) return;
  take(result, result.alternatives.front());
  statistics.target_tokens += result.ids.size();
}

AttentionMaps Translator::Impl::attention(const Translation& result, uint32_t start,
                                          const HeadMasks& masks) {
  const Stopwatch watch(statistics.attention_seconds);
  const Extents extents = model->extents();
  AttentionMaps maps = {.encoder_layers = extents.encoder_layers,
                        .encoder_heads = extents.encoder_heads,
                        .decoder_layers = extents.decoder_layers,
                        .decoder_heads = extents.decoder_heads,
                        .cross_layers = extents.cross_layers,
                        .cross_heads = extents.cross_heads,
                        .source_length = static_cast<uint32_t>(result.source_ids.size()),
                        .target_length = static_cast<uint32_t>(result.ids.size())};
  if (result.ids.empty()) return maps;
  SequenceAttention attention =
      translation->attention(result.source_ids, fed_ids(start, result.ids), masks);
  maps.encoder = std::move(attention.encoder);
  maps.decoder = std::move(attention.decoder);
  maps.cross = std::move(attention.cross);
  return maps;
}

std::vector<Translation> Translator::Impl::translate(size_t texts, const TranslateOptions& options,
                                                     const ReadSources& read) {
  TranslationModel& model = *translation;
  statistics = {.texts = texts,
                .load_seconds = statistics.load_seconds,
                .weight_bytes = statistics.weight_bytes,
                .predicted_device_bytes = statistics.weight_bytes};
  const auto start = Clock::now();
  const Stopwatch watch(statistics.total_seconds);

  const GenerationSettings settings = this->settings(options);
  std::vector<Translation> results(texts);
  const std::vector<std::vector<uint32_t>> sources = read(results);

  std::vector<size_t> indices;  // texts that need the device
  std::vector<uint32_t> lengths;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].empty()) continue;
    indices.push_back(i);
    lengths.push_back(static_cast<uint32_t>(sources[i].size()));
  }
  size_t done = texts - indices.size();
  const BatchBounds bounds = {
      .tokens = options.batch_tokens,
      .sequences = options.batch_sentences,
      .limit = [&](uint32_t length) { return model.batch_limit(length, settings); }};
  for (const SearchPlan& search : plan(model, lengths, bounds)) {
    if (options.cancel && options.cancel->load()) break;
    std::vector<std::vector<uint32_t>> search_sources;
    for (size_t index : search.sequences) search_sources.push_back(sources[indices[index]]);

    const HeadMasks& masks = options.head_masks;
    const GenerationResult found =
        model.generate({.sources = search_sources,
                        .settings = settings,
                        .head_masks = masks,
                        .cancel = options.cancel,
                        .on_first_token =
                            [&] {
                              if (statistics.first_token_seconds == 0)
                                statistics.first_token_seconds = seconds_since(start);
                            },
                        .slots = search.slots,
                        .on_item =
                            [&](size_t source, const std::vector<Hypothesis>& ended) {
                              finish(results[indices[search.sequences[source]]], ended);
                              ++done;
                              if (options.progress) options.progress(done, texts);
                            }});
    statistics.batches += 1;
    statistics.decoder_steps += found.steps;
    statistics.row_steps += found.row_steps;
    statistics.needed_row_steps += found.needed_row_steps;
    statistics.refills += found.refills;
    statistics.prepare_seconds += found.prepare_seconds;
    statistics.encode_seconds += found.encode_seconds;
    statistics.decode_seconds += found.decode_seconds;
    statistics.predicted_device_bytes = std::max(statistics.predicted_device_bytes,
                                                 statistics.weight_bytes + found.predicted_bytes);
    for (const size_t index : search.sequences) {
      Translation& result = results[indices[index]];
      if (options.attention && result.complete)
        result.attention = attention(result, settings.start, masks);
    }
    if (found.cancelled) break;
  }
  statistics.peak_device_bytes = device->memory().peak();
  return results;
}

/// Scores pairs; one without source ids scores 0.
std::vector<TranslationScore> Translator::Impl::score(
    std::span<const std::vector<uint32_t>> sources, std::span<const std::vector<uint32_t>> targets,
    const HeadMasks& head_masks) {
  std::vector<size_t> indices;  // pairs that need the device
  std::vector<uint32_t> lengths;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].empty()) continue;
    indices.push_back(i);
    lengths.push_back(static_cast<uint32_t>(std::max(sources[i].size(), targets[i].size())));
  }
  // Batches with little padding, whose logits can be bound whole.
  const uint64_t vocabulary = model->extents().vocabulary;
  const uint64_t range = std::min<uint64_t>(device->capabilities().max_storage_range, 64 << 20);
  const BatchBounds bounds = {
      .tokens = 320, .sequences = 64, .limit = [&](uint32_t length) {
        const uint64_t row = uint64_t{length} * vocabulary * sizeof(float);
        return static_cast<uint32_t>(std::max<uint64_t>(range / 2 / std::max<uint64_t>(row, 1), 1));
      }};
  const uint32_t start = settings({}).start;
  std::vector<TranslationScore> result(sources.size());
  for (const std::vector<size_t>& batch : plan_batches(lengths, bounds)) {
    std::vector<std::vector<uint32_t>> batch_sources, batch_targets;
    for (size_t i : batch) {
      batch_sources.push_back(sources[indices[i]]);
      batch_targets.push_back(targets[indices[i]]);
    }
    std::vector<std::vector<double>> scores =
        translation->score(batch_sources, batch_targets, start, head_masks);
    for (size_t i = 0; i < batch.size(); ++i)
      result[indices[batch[i]]] = {
          .log_probability = std::accumulate(scores[i].begin(), scores[i].end(), 0.0),
          .tokens = static_cast<uint32_t>(batch_targets[i].size()),
          .ids = std::move(batch_targets[i]),
          .token_log_probabilities = std::move(scores[i])};
  }
  return result;
}

void Translator::Impl::load(const OpenModel& opened, const LoadOptions& options,
                            std::shared_ptr<WeightsLoad> weights) {
  opened.require(Capability::kTranslate);
  tokenizers = opened.tokenizers();
  check_vocabulary(*tokenizers.target, opened.architecture().extents().vocabulary,
                   opened.checkpoint().path().string());
  ModelOptions loading = model_options(options);
  loading.weights = std::move(weights);
  model = load_model(*device, opened, loading);
  translation = model->translates();
  statistics.weight_bytes = model->weight_bytes();
}

Translator::Translator(std::shared_ptr<Device> device, const std::string& folder,
                       const LoadOptions& options)
    : impl_(std::make_shared<Impl>(given(std::move(device), "Translator"))) {
  const Stopwatch watch(impl_->statistics.load_seconds);
  impl_->load(*open_model(folder), options);
}

Translator::Translator(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                       const LoadOptions& options)
    : impl_(std::make_shared<Impl>(given(std::move(device), "Translator"))) {
  const Stopwatch watch(impl_->statistics.load_seconds);
  impl_->load(*model, options);
}

Translator::Translator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Translator::~Translator() = default;
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;

std::vector<Translation> Translator::translate(std::span<const std::string> texts,
                                               const TranslateOptions& options) {
  return impl_->translate(texts.size(), options, [&](std::vector<Translation>& results) {
    return impl_->tokenize(texts, results, options);
  });
}

std::vector<Translation> Translator::translate_ids(std::span<const std::vector<uint32_t>> sources,
                                                   const TranslateOptions& options) {
  return impl_->translate(sources.size(), options, [&](std::vector<Translation>& results) {
    return impl_->take_ids(sources, results, options);
  });
}

Translation Translator::translate(const std::string& text, const TranslateOptions& options) {
  return std::move(translate(std::span(&text, 1), options).front());
}

std::vector<TranslationScore> Translator::score(std::span<const std::string> sources,
                                                std::span<const std::string> targets,
                                                const HeadMasks& head_masks) {
  require_pairs(sources.size(), targets.size());
  std::vector<Translation> ignored(sources.size());
  const std::vector<std::vector<uint32_t>> ids = impl_->tokenize(sources, ignored, {});
  std::vector<std::vector<uint32_t>> target_ids;
  for (const std::string& target : targets) target_ids.push_back(impl_->target_ids(target));
  return impl_->score(ids, target_ids, head_masks);
}

std::vector<TranslationScore> Translator::score_ids(std::span<const std::vector<uint32_t>> sources,
                                                    std::span<const std::vector<uint32_t>> targets,
                                                    const HeadMasks& head_masks) {
  require_pairs(sources.size(), targets.size());
  std::vector<Translation> ignored(sources.size());
  return impl_->score(impl_->take_ids(sources, ignored, {}), targets, head_masks);
}

const TranslateStatistics& Translator::statistics() const { return impl_->statistics; }

uint32_t Translator::max_source_tokens() const { return impl_->translation->max_source_tokens(); }

ModelExtents Translator::extents() const {
  const Extents extents = impl_->model->extents();
  return {extents.encoder_layers, extents.encoder_heads, extents.decoder_layers,
          extents.decoder_heads,  extents.cross_layers,  extents.cross_heads};
}

std::string Translator::start_token() const {
  const uint32_t start = impl_->settings({}).start;
  return std::string(impl_->tokenizers.target->piece(static_cast<int32_t>(start)));
}

uint64_t Translator::trim() {
  return trim_memory(*impl_->device, [&] { impl_->translation->trim(); });
}

const std::shared_ptr<Device>& Translator::device() const { return impl_->device; }

}  // namespace mulciber
