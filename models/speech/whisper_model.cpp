#include "models/speech/whisper_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/adapters/weights_load.h"
#include "models/core/padded_ids.h"
#include "models/core/recently_used.h"
#include "models/generation/decoding.h"
#include "models/generation/not_finite.h"
#include "models/speech/speech_programs.h"
#include "models/speech/speech_search.h"
#include "mulciber/error.h"
#include "runtime/transfer.h"

namespace mulciber {
namespace {

constexpr size_t kWhisperPassesKept = 4;

Extents extents_of(const WhisperConfig& config) {
  return {.vocabulary = config.vocabulary,
          .context = config.context,
          .encoder_layers = config.encoder_layers,
          .encoder_heads = config.encoder_heads,
          .decoder_layers = config.decoder_layers,
          .decoder_heads = config.decoder_heads,
          .cross_layers = config.decoder_layers,
          .cross_heads = config.decoder_heads};
}

class WhisperArchitecture : public Architecture {
 public:
  explicit WhisperArchitecture(const Checkpoint& checkpoint)
      : Architecture(checkpoint), config_(read_whisper_config(checkpoint)) {}

  const GenerationConfig& generation() const override { return config_.generation; }
  Extents extents() const override { return extents_of(config_); }

 private:
  DeclaredWeights declare() const override {
    return declared_weights<SpeechNetwork>(config_, checkpoint());
  }
  std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const override {
    return std::make_unique<WhisperModel>(device, checkpoint(), config_, options);
  }

  WhisperConfig config_;
};

}  // namespace

WhisperModel::WhisperModel(Device& device, const Checkpoint& checkpoint,
                           const WhisperConfig& config, const ModelOptions& options)
    : device_(device),
      config_(config),
      half_precision_(options.activations == DataType::kF16 ||
                      options.matrices == MatrixStorage::kF16),
      memory_limit_(options.memory_limit),
      weights_(weights_of(device, declared_weights<SpeechNetwork>(config, checkpoint).table(),
                          checkpoint, "whisper", options)),
      network_(loaded_network<SpeechNetwork>(device, weights_, checkpoint, config,
                                             options.activations)) {}

WhisperModel::~WhisperModel() = default;

Extents WhisperModel::extents() const { return extents_of(config_); }

SpeechEncoding& WhisperModel::encoding() {
  if (!encoding_) {
    const uint64_t D = config_.width, size = size_of(network_.activations());
    // The windows, the residual stream with the widest tensor of a layer, and the memories.
    const uint64_t bytes =
        uint64_t{config_.frames()} * 3 * config_.mels * sizeof(float) +
        config_.positions *
            (2 * D + std::max<uint64_t>(4 * D, config_.encoder_ffn) +
             uint64_t{config_.decoder_layers} * network_.decoder().memory_columns()) *
            size;
    require_memory(device_, bytes, memory_limit_, "a window of sound");
    encoding_ = std::make_unique<SpeechEncoding>(device_, network_, config_);
  }
  return *encoding_;
}

MemoryTexts& WhisperModel::texts() {
  if (!texts_)
    texts_.emplace(device_, weights_, network_.decoder(), encoding().memories, memory_limit_);
  return *texts_;
}

void WhisperModel::trim() {
  passes_.clear();
  texts_.reset();
  encoding_.reset();
}

void WhisperModel::encode(std::span<const float> features) {
  const uint64_t wanted = uint64_t{config_.frames()} * config_.mels;
  if (features.size() != wanted)
    throw ModelError("features",
                     fmt::format("are {} numbers, the model takes {} frames of {}", features.size(),
                                 config_.frames(), config_.mels),
                     "");
  SpeechEncoding& encoder = encoding();
  encoder.write(device_, features, config_.mels);
  encoder.program->run();
}

SpeechPass& WhisperModel::pass(uint32_t length, bool attentions) {
  if (const auto* found = recently_used(passes_, [&](const auto& entry) {
        return entry->length == length && entry->attentions == attentions;
      }))
    return **found;
  while (passes_.size() >= kWhisperPassesKept) passes_.pop_back();
  passes_.push_front(std::make_unique<SpeechPass>(device_, network_, config_, encoding().windows,
                                                  length, attentions));
  return *passes_.front();
}

std::vector<float> WhisperModel::features_of(const NamedArrays& inputs) const {
  const auto found = inputs.find("input_features");
  const std::vector<uint64_t> wanted = {1, config_.mels, config_.frames()};
  if (found == inputs.end() || found->second.shape != wanted)
    throw ModelError("whisper input `input_features`",
                     fmt::format("is not there as (1, {}, {})", config_.mels, config_.frames()),
                     "");
  std::vector<float> features(uint64_t{config_.mels} * config_.frames());
  for (uint64_t mel = 0; mel < config_.mels; ++mel)
    for (uint64_t frame = 0; frame < config_.frames(); ++frame)
      features[frame * config_.mels + mel] =
          static_cast<float>(found->second.values[mel * config_.frames() + frame]);
  return features;
}

NamedArrays WhisperModel::forward(const NamedArrays& inputs, std::span<const std::string> wanted) {
  const std::vector<float> features = features_of(inputs);
  const PaddedIds ids =
      read_padded_ids("whisper", inputs, "decoder_input_ids", config_.vocabulary, config_.context);
  if (ids.rows != 1)
    throw ModelError("whisper input `decoder_input_ids`",
                     fmt::format("has {} rows, one is expected", ids.rows), "");
  encoding().write(device_, features, config_.mels);
  SpeechPass& program = pass(ids.length, wants(wanted, "attentions"));
  program.words.set(program.tokens, ids.ids);
  upload(device_, program.control.view(), program.words.bytes());
  program.program->run();

  NamedArrays results;
  const auto add = [&](const std::string& name, const Tensor& tensor, std::vector<uint64_t> shape) {
    const std::vector<float> values = download_as<float>(device_, program.program->view(tensor));
    results[name] = {std::move(shape), {values.begin(), values.end()}};
  };
  const auto add_layer = [&](const std::string& name, const std::string& traced,
                             std::vector<uint64_t> shape) {
    const std::vector<float> values =
        download_as<float>(device_, program.program->view(program.trace.at(traced)));
    NamedArray& array = results[name];
    if (array.shape.empty()) {
      array.shape = std::move(shape);
      array.shape.insert(array.shape.begin(), 0);
    }
    ++array.shape.front();
    array.values.insert(array.values.end(), values.begin(), values.end());
  };
  const uint64_t length = ids.length, positions = config_.positions;
  add("logits", program.logits, {1, length, config_.vocabulary});
  add("encoder_last_hidden_state", program.trace.at("encoder.last_hidden_state"),
      {1, positions, config_.width});
  for (uint32_t i = 0; i < config_.encoder_layers && program.attentions; ++i)
    add_layer("encoder_attentions", fmt::format("encoder.layers.{}.self_attn.probabilities", i),
              {1, config_.encoder_heads, positions, positions});
  for (uint32_t i = 0; i < config_.decoder_layers && program.attentions; ++i) {
    add_layer("decoder_attentions", fmt::format("decoder.layers.{}.self_attn.probabilities", i),
              {1, config_.decoder_heads, length, length});
    add_layer("cross_attentions", fmt::format("decoder.layers.{}.cross_attn.probabilities", i),
              {1, config_.decoder_heads, length, positions});
  }
  keep_wanted(results, wanted);
  return results;
}

NamedArrays WhisperModel::search(const NamedArrays& inputs, const GenerationConfig& config,
                                 uint32_t n_best) {
  const PaddedIds ids =
      read_padded_ids("whisper", inputs, "decoder_input_ids", config_.vocabulary, config_.context);
  if (ids.rows != 1 || n_best != 1)
    throw ModelError("whisper search", "takes one row of decoder_input_ids, and gives one", "");
  encode(features_of(inputs));
  SpeechSearchSettings settings;
  settings.beams = static_cast<uint32_t>(std::max(config.num_beams, 1));
  settings.max_tokens = static_cast<uint32_t>(config.max_new_tokens.value_or(1));
  settings.ends.assign(config.eos.begin(), config.eos.end());
  const SpeechText text = search_speech(*this, ids.ids, settings);
  return {{"output_ids",
           {{1, text.ids.size()}, std::vector<double>(text.ids.begin(), text.ids.end())}}};
}

std::unique_ptr<const Architecture> read_whisper(const Checkpoint& checkpoint) {
  return std::make_unique<const WhisperArchitecture>(checkpoint);
}

}  // namespace mulciber
