#include "models/vision/image_text_reader_model.h"

#include <fmt/format.h>

#include "models/adapters/weights_load.h"
#include "models/core/padded_ids.h"
#include "models/families/registry.h"
#include "mulciber/error.h"
#include "ops/elementwise.h"
#include "runtime/transfer.h"

namespace mulciber {
namespace {

class ReaderArchitecture : public Architecture {
 public:
  explicit ReaderArchitecture(const Checkpoint& checkpoint) : Architecture(checkpoint) {
    const ConfigReaders readers(checkpoint);
    config_ = read_image_text_reader_config(readers.config, readers.generation_or_null());
  }

  const GenerationConfig& generation() const override { return config_.generation; }
  Extents extents() const override { return extents_of(config_); }

 private:
  DeclaredWeights declare() const override {
    return declared_weights<ImageTextReaderNetwork>(config_, checkpoint());
  }
  std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const override {
    return std::make_unique<ImageTextReaderModel>(device, checkpoint(), config_, options);
  }

  ImageTextReaderConfig config_;
};

}  // namespace

/// Encodes an image to the keys and values of every decoder layer's cross-attention.
struct ImageTextReaderModel::Seeing {
  DataType type;  // pixels: u32, a word each, or f32, channel by channel
  ImageNormalization normalization;
  Buffer pixels, first;
  Tensor states;
  std::optional<Program> program;

  Seeing(Device& device, const ImageTextReaderNetwork& network, const VisionTower& tower,
         std::span<const Tensor> memories, DataType pixel_type, const ImageNormalization& wanted)
      : type(pixel_type), normalization(wanted) {
    const uint64_t H = tower.height, W = tower.width_pixels;
    const Shape shape = type == DataType::kU32 ? Shape{1, H, W} : Shape{1, tower.channels, H, W};
    pixels = device.memory().allocate(shape.elements() * sizeof(float), MemoryUsage::kActivations);
    const std::vector<float> begin =
        network.tower.first_states(device, {tower.height, tower.width_pixels});
    first = device.memory().allocate(begin.size() * sizeof(float), MemoryUsage::kActivations);
    upload(device, first.view(), std::as_bytes(std::span(begin)));
    ProgramBuilder builder(device, "see");
    const Tensor encoded = network.tower.states(
        builder, pixels.tensor(shape, type),
        first.tensor({tower.tokens(), tower.width}, DataType::kF32), normalization);
    network.decoder.project(builder, encoded, memories);
    states = encoded.type == DataType::kF16 ? convert(builder, encoded, DataType::kF32) : encoded;
    builder.keep(states);
    program = builder.build();
  }
};

ImageTextReaderModel::ImageTextReaderModel(Device& device, const Checkpoint& checkpoint,
                                           const ImageTextReaderConfig& config,
                                           const ModelOptions& options)
    : device_(device),
      config_(config),
      half_precision_(options.activations == DataType::kF16 ||
                      options.matrices == MatrixStorage::kF16),
      memory_limit_(options.memory_limit),
      weights_(weights_of(device,
                          declared_weights<ImageTextReaderNetwork>(config, checkpoint).table(),
                          checkpoint, model_type(checkpoint), options)),
      network_(loaded_network<ImageTextReaderNetwork>(device, weights_, checkpoint, config,
                                                      options.activations)),
      memories_(allocate_memories()),
      texts_(device, weights_, network_.decoder, memories_, options.memory_limit) {}

ImageTextReaderModel::~ImageTextReaderModel() = default;

Extents ImageTextReaderModel::extents() const { return extents_of(config_); }

std::vector<Tensor> ImageTextReaderModel::allocate_memories() {
  const VisionTower& tower = config_.vision.tower;
  const Shape shape = {1, tower.tokens(), network_.decoder.memory_columns()};
  const uint64_t bytes = shape.elements() * size_of(network_.decoder.activations);
  // The states of an image with the widest tensor of a layer, and the memories.
  const uint64_t activations =
      tower.tokens() * network_.tower.live_columns() * size_of(network_.decoder.activations);
  require_memory(device_, bytes * config_.layers + activations, memory_limit_, "an image");
  std::vector<Tensor> memories;
  for (uint32_t i = 0; i < config_.layers; ++i) {
    kept_.push_back(device_.memory().allocate(bytes, MemoryUsage::kActivations));
    memories.push_back(kept_.back().tensor(shape, network_.decoder.activations));
  }
  return memories;
}

ImageTextReaderModel::Seeing& ImageTextReaderModel::seeing(
    DataType pixels, const ImageNormalization& normalization) {
  if (!seeing_ || seeing_->type != pixels || !(seeing_->normalization == normalization)) {
    seeing_.reset();
    seeing_ = std::make_unique<Seeing>(device_, network_, config_.vision.tower, memories_, pixels,
                                       normalization);
  }
  return *seeing_;
}

void ImageTextReaderModel::trim() {
  texts_.trim();
  seeing_.reset();
}

void ImageTextReaderModel::see(std::span<const uint32_t> pixels,
                               const ImageNormalization& normalization) {
  const VisionTower& tower = config_.vision.tower;
  if (pixels.size() != uint64_t{tower.height} * tower.width_pixels)
    throw ModelError("image",
                     fmt::format("has {} pixels, the model takes {} by {}", pixels.size(),
                                 tower.width_pixels, tower.height),
                     "preprocessor_config.json and config.json disagree");
  Seeing& program = seeing(DataType::kU32, normalization);
  upload(device_, program.pixels.view(), std::as_bytes(pixels));
  program.program->run();
}

NamedArrays ImageTextReaderModel::forward(const NamedArrays& inputs,
                                          std::span<const std::string> wanted) {
  const VisionTower& tower = config_.vision.tower;
  const auto found = inputs.find("pixel_values");
  const std::vector<uint64_t> shape = {1, tower.channels, tower.height, tower.width_pixels};
  if (found == inputs.end() || found->second.shape != shape)
    throw ModelError(family() + " input `pixel_values`",
                     fmt::format("is not there as (1, {}, {}, {})", tower.channels, tower.height,
                                 tower.width_pixels),
                     "");
  const PaddedIds ids =
      read_padded_ids(family(), inputs, "decoder_input_ids", config_.vocabulary, config_.context);
  if (ids.rows != 1)
    throw ModelError(family() + " input `decoder_input_ids`",
                     fmt::format("has {} rows, one is expected", ids.rows), "");
  const std::vector<float> values(found->second.values.begin(), found->second.values.end());
  Seeing& program = seeing(DataType::kF32, {});
  upload(device_, program.pixels.view(), std::as_bytes(std::span(values)));
  program.program->run();

  NamedArrays results;
  const auto add = [&](const char* name, std::span<const float> part,
                       std::vector<uint64_t> part_shape) {
    results[name] = {std::move(part_shape), {part.begin(), part.end()}};
  };
  const uint64_t length = ids.length, tokens = tower.tokens();
  add("encoder_last_hidden_state",
      download_as<float>(device_, program.program->view(program.states)), {1, tokens, tower.width});
  // Tokens are fed one by one, as a search does. The first is a prompt.
  std::vector<float> logits;
  texts_.begin(1);
  for (uint32_t i = 0; i < length; ++i) {
    const uint32_t parent = 0;
    const std::span<const float> row =
        i == 0 ? texts_.prompt({&ids.ids[0], 1}, 0) : texts_.step({&ids.ids[i], 1}, {&parent, 1});
    logits.insert(logits.end(), row.begin(), row.begin() + config_.vocabulary);
  }
  add("logits", logits, {1, length, config_.vocabulary});
  add("cross_attentions", texts_.cross_attention(ids.ids),
      {config_.layers, 1, config_.heads, length, tokens});
  keep_wanted(results, wanted);
  return results;
}

Extents extents_of(const ImageTextReaderConfig& config) {
  return {.vocabulary = config.vocabulary,
          .context = config.context,
          .encoder_layers = config.vision.tower.layers,
          .encoder_heads = config.vision.tower.heads,
          .decoder_layers = config.layers,
          .decoder_heads = config.heads,
          .cross_layers = config.layers,
          .cross_heads = config.heads};
}

std::unique_ptr<const Architecture> read_image_text_reader(const Checkpoint& checkpoint) {
  return std::make_unique<const ReaderArchitecture>(checkpoint);
}

}  // namespace mulciber
