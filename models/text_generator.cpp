#include "mulciber/text_generator.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "models/chat_template.h"
#include "models/decoder_model.h"
#include "models/registry.h"
#include "models/token_stream.h"
#include "models/tokenizer.h"

namespace mulciber {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kDefaultContext = 4096;

// Pieces that end an answer in the files of families that chat, where no configuration names their ids.
constexpr const char* kEndPieces[] = {"<end_of_turn>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>"};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

ModelOptions model_options(const GeneratorOptions& options, uint32_t context) {
  return {.matrices = options.load.half_weights ? MatrixStorage::kF16 : MatrixStorage::kAsInFile,
          .activations = options.load.half_activations ? DataType::kF16 : DataType::kF32,
          .cache = storage_type(options.key_values),
          .memory_limit = options.load.memory_limit,
          .context = context,
          .on_progress = options.load.on_progress};
}

uint32_t context_of(const DecoderConfig& config, const GeneratorOptions& options) {
  if (options.context > config.max_positions)
    throw ModelError("context", fmt::format("of {} tokens is asked for, the model was made for {}", options.context, config.max_positions), "");
  return options.context > 0 ? options.context : std::min(config.max_positions, kDefaultContext);
}

MemoryPrediction predict_memory(Device& device, const Checkpoint& checkpoint, const DecoderConfig& config,
                                const GeneratorOptions& options) {
  const uint32_t context = context_of(config, options);
  const ModelOptions loading = model_options(options, context);
  const DecoderNetwork network = planned_decoder_network(config, context, loading.activations, cache_type(loading));
  MemoryPrediction predicted;
  predicted.weight_bytes = DecoderModel::predict_weight_bytes(checkpoint, config, loading);
  predicted.context_bytes = SequenceBatch::predict_bytes(device.capabilities(), network, {1, context});
  for (const CausalLayer& layer : network.decoder.layers)
    predicted.key_value_bytes += context * row_bytes(network.cache, layer.attention.cache_columns());
  return predicted;
}

std::vector<uint32_t> end_ids(const DecoderConfig& config, const Tokenizer& tokenizer) {
  std::vector<uint32_t> ids(config.generation.eos.begin(), config.generation.eos.end());
  if (ids.empty() && tokenizer.special().eos) ids.push_back(static_cast<uint32_t>(*tokenizer.special().eos));
  for (const char* piece : kEndPieces) {
    const auto id = tokenizer.id(piece);
    if (id && tokenizer.is_special(*id)) ids.push_back(static_cast<uint32_t>(*id));
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.size() > kMostStops) ids.resize(kMostStops);
  return ids;
}

SampleSettings settings_of(const Sampling& sampling) {
  const SampleSettings settings = {.temperature = sampling.temperature,
                                   .top_k = sampling.top_k,
                                   .top_p = sampling.top_p,
                                   .min_p = sampling.min_p,
                                   .typical_p = sampling.typical_p,
                                   .repetition_penalty = sampling.repetition_penalty,
                                   .presence_penalty = sampling.presence_penalty,
                                   .frequency_penalty = sampling.frequency_penalty,
                                   .penalty_window = sampling.penalty_window,
                                   .seed = sampling.seed};
  sample_setting_words(settings);  // throws what is out of range
  return settings;
}

}  // namespace

const char* name_of(GenerateEnd end) {
  switch (end) {
    case GenerateEnd::kEndOfText: return "end of text";
    case GenerateEnd::kStopText: return "stop text";
    case GenerateEnd::kTokenLimit: return "token limit";
    case GenerateEnd::kContextFull: return "context full";
    case GenerateEnd::kCancelled: return "cancelled";
  }
  return "?";
}

struct TextGenerator::Impl {
  std::string path;
  std::shared_ptr<Device> device;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<DecoderModel> model;
  std::optional<SequenceBatch> batch;
  std::vector<uint32_t> ends;
  uint32_t context = 0;
  GenerateStatistics statistics;
};

MemoryPrediction TextGenerator::predict(Device& device, const std::string& path, const GeneratorOptions& options) {
  const Checkpoint checkpoint(path);
  return predict_memory(device, checkpoint, read_decoder_config(checkpoint, decoder_family(checkpoint)), options);
}

TextGenerator::TextGenerator(std::shared_ptr<Device> device, const std::string& path, const GeneratorOptions& options)
    : impl_(std::make_unique<Impl>()) {
  const auto start = Clock::now();
  if (!device) throw DeviceError(DeviceError::Kind::kUnavailable, "TextGenerator", "was given no device", "");
  Impl& impl = *impl_;
  impl.path = path;
  impl.device = std::move(device);
  const Checkpoint checkpoint(path);
  const ReadDecoder read = decoder_family(checkpoint);
  const DecoderConfig config = read_decoder_config(checkpoint, read);
  impl.context = context_of(config, options);
  const MemoryPrediction predicted = predict_memory(*impl.device, checkpoint, config, options);
  impl.statistics.predicted_device_bytes = predicted.weight_bytes + predicted.context_bytes;
  require_memory(*impl.device, impl.statistics.predicted_device_bytes, options.load.memory_limit,
                 fmt::format("the model with a context of {} tokens", impl.context));
  impl.tokenizer = load_tokenizer(checkpoint.gguf() ? checkpoint.path() : checkpoint.folder(), checkpoint.model_type());
  impl.model = std::make_unique<DecoderModel>(*impl.device, checkpoint, model_options(options, impl.context), read);
  impl.batch.emplace(*impl.device, impl.model->network(), BatchShape{1, impl.context}, 0);
  impl.ends = end_ids(impl.model->config(), *impl.tokenizer);
  impl.statistics.weight_bytes = impl.model->weight_bytes();
  impl.statistics.load_seconds = seconds_since(start);
}

TextGenerator::~TextGenerator() = default;
TextGenerator::TextGenerator(TextGenerator&&) noexcept = default;
TextGenerator& TextGenerator::operator=(TextGenerator&&) noexcept = default;

Generation TextGenerator::generate(const std::string& prompt, const GenerateOptions& options) {
  Impl& impl = *impl_;
  const std::vector<int32_t> encoded =
      impl.tokenizer->encode(prompt, {.add_special = options.add_special, .parse_special = options.parse_special});
  Generation result;
  result.prompt_ids.assign(encoded.begin(), encoded.end());
  if (result.prompt_ids.empty()) throw ModelError("prompt", "has no tokens", "give some text");
  if (result.prompt_ids.size() >= impl.context)
    throw ModelError("prompt", fmt::format("has {} tokens, which leaves no room in a context of {}", result.prompt_ids.size(), impl.context),
                     "give a shorter text, or ask for a larger context");

  // What is held and begins alike stays; the last token is fed again, because its logits are not kept.
  const std::span<const uint32_t> held = impl.batch->ids(0);
  const auto common = std::mismatch(result.prompt_ids.begin(), result.prompt_ids.end() - 1, held.begin(), held.end());
  const auto reused = static_cast<uint32_t>(common.first - result.prompt_ids.begin());
  impl.batch->truncate(0, reused);

  TokenStream stream(*impl.tokenizer, encoded);
  StopFilter filter(options.stop);
  std::atomic<bool> stop{false};
  bool cancelled = false;
  const auto look = [&] {
    if (options.cancel && options.cancel->load()) stop = cancelled = true;
  };
  const auto show = [&](const std::string& text) {
    const std::string shown = filter.push(text);
    result.text += shown;
    if (!shown.empty() && options.on_text) options.on_text(shown);
    if (filter.stopped()) stop = true;
  };
  SequenceRequest request;
  request.prompts = {{result.prompt_ids.begin() + reused, result.prompt_ids.end()}};
  const uint32_t room = impl.context - static_cast<uint32_t>(result.prompt_ids.size()) + 1;
  request.max_new_tokens = options.max_new_tokens > 0 ? options.max_new_tokens : room;
  if (!options.ignore_end) request.stops = impl.ends;
  request.sampling = {settings_of(options.sampling.value_or(default_sampling()))};
  request.steps_per_submission = options.steps_per_submission;
  request.cancel = &stop;
  request.on_prompt = [&](size_t done, size_t total) {
    look();
    if (options.on_prompt) options.on_prompt(done, total);
  };
  request.on_token = [&](uint32_t, uint32_t id) {
    look();
    if (stop) return;
    result.ids.push_back(id);
    const bool ends = std::binary_search(request.stops.begin(), request.stops.end(), id);
    if (!ends) show(stream.push(static_cast<int32_t>(id)));
  };
  const SequenceResult found = impl.batch->generate(request);
  if (!stop) show(stream.finish());
  if (!filter.stopped()) {
    const std::string rest = filter.finish();
    result.text += rest;
    if (!rest.empty() && options.on_text) options.on_text(rest);
  }

  switch (found.rows[0].end) {
    case SequenceEnd::kStop: result.end = GenerateEnd::kEndOfText; break;
    case SequenceEnd::kFull: result.end = GenerateEnd::kContextFull; break;
    default: result.end = GenerateEnd::kTokenLimit;
  }
  if (options.max_new_tokens == 0 && result.end == GenerateEnd::kTokenLimit) result.end = GenerateEnd::kContextFull;
  if (filter.stopped()) result.end = GenerateEnd::kStopText;
  if (cancelled) result.end = GenerateEnd::kCancelled;

  // The device may have run ahead of a stop text: what is held ends with the answer that was given.
  impl.batch->truncate(0, static_cast<uint32_t>(result.prompt_ids.size() + result.ids.size()));

  GenerateStatistics& s = impl.statistics;
  s.prompt_tokens = result.prompt_ids.size();
  s.reused_tokens = reused;
  s.new_tokens = result.ids.size();
  s.decode_steps = found.steps;
  s.build_seconds = found.build_seconds;
  s.prefill_seconds = found.prefill_seconds;
  s.decode_seconds = found.decode_seconds;
  s.first_token_seconds = found.first_token_seconds;
  s.peak_device_bytes = impl.device->memory().peak();
  s.step_bytes = impl.batch->step().work().bytes;
  return result;
}

std::optional<std::string> TextGenerator::chat_prompt(std::span<const ChatMessage> messages) const {
  const std::optional<ChatTemplate> chat_template = ChatTemplate::load(impl_->path);
  if (!chat_template) return std::nullopt;
  return chat_template->render(messages);
}

Sampling TextGenerator::default_sampling() const {
  const GenerationConfig& config = impl_->model->config().generation;
  Sampling sampling;
  if (config.do_sample) {
    sampling.temperature = static_cast<float>(config.temperature);
    sampling.top_k = static_cast<uint32_t>(config.top_k);
    sampling.top_p = config.top_p > 0 ? static_cast<float>(config.top_p) : 1;
    sampling.min_p = static_cast<float>(config.min_p);
    sampling.typical_p = config.typical_p > 0 ? static_cast<float>(config.typical_p) : 1;
  }
  if (config.repetition_penalty > 0) sampling.repetition_penalty = static_cast<float>(config.repetition_penalty);
  sampling.penalty_window = impl_->context;
  return sampling;
}

const GenerateStatistics& TextGenerator::statistics() const { return impl_->statistics; }
uint32_t TextGenerator::context() const { return impl_->context; }
std::string TextGenerator::family() const { return impl_->model->family(); }
const std::shared_ptr<Device>& TextGenerator::device() const { return impl_->device; }

}  // namespace mulciber
