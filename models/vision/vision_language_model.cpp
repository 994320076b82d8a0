#include "models/vision/vision_language_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/core/padded_ids.h"
#include "models/generation/not_finite.h"
#include "mulciber/error.h"
#include "runtime/transfer.h"

namespace mulciber {
/// Computes an image's embeddings.
struct VisionLanguageModel::Seeing {
  DataType type;  // pixels: u32, a word each, or f32, channel by channel
  ImageNormalization normalization;
  Buffer pixels, first, order;
  Tensor rows;
  std::optional<Program> program;

  Seeing(Device& device, const VisionLanguageModel& model, DataType pixel_type,
         const ImageNormalization& wanted)
      : type(pixel_type), normalization(wanted) {
    const VisionTower& tower = model.config_.vision.tower;
    const uint64_t H = tower.height, W = tower.width_pixels;
    const Shape shape = type == DataType::kU32 ? Shape{1, H, W} : Shape{1, tower.channels, H, W};
    const auto filled = [&](std::span<const std::byte> bytes) {
      Buffer buffer = device.memory().allocate(bytes.size(), MemoryUsage::kActivations);
      upload(device, buffer.view(), bytes);
      return buffer;
    };
    pixels = device.memory().allocate(shape.elements() * sizeof(float), MemoryUsage::kActivations);
    const std::vector<float> begin =
        model.embedder_.tower.first_states(device, {tower.height, tower.width_pixels});
    first = filled(std::as_bytes(std::span(begin)));
    const std::vector<uint32_t>& numbers = model.embedder_.connector.order();
    order = filled(std::as_bytes(std::span(numbers)));
    ProgramBuilder builder(device, "see");
    const Tensor states = model.embedder_.tower.states(
        builder, pixels.tensor(shape, type),
        first.tensor({tower.tokens(), tower.width}, DataType::kF32), normalization);
    rows =
        model.embedder_.connector(builder, states, order.tensor({numbers.size()}, DataType::kU32));
    builder.keep(rows);
    program = builder.build();
  }
};

VisionLanguageModel::VisionLanguageModel(Device& device, const Checkpoint& checkpoint,
                                         const VisionLanguageConfig& config,
                                         const ModelOptions& options)
    : DecoderModel(
          device, checkpoint, config.text, options,
          declared_weights<ImageEmbedderNetwork>(config, checkpoint).table(),
          predict_vision_language_memory(device.capabilities(), checkpoint, config, options)),
      config_(config),
      activations_(options.activations),
      embedder_(loaded_network<ImageEmbedderNetwork>(device, weights(), checkpoint, config,
                                                     options.activations)) {}

VisionLanguageModel::~VisionLanguageModel() = default;

VisionLanguageModel::Seeing& VisionLanguageModel::seeing(DataType pixels,
                                                         const ImageNormalization& normalization) {
  if (!seeing_ || seeing_->type != pixels || !(seeing_->normalization == normalization)) {
    seeing_.reset();
    seeing_ = std::make_unique<Seeing>(device(), *this, pixels, normalization);
  }
  return *seeing_;
}

std::vector<float> VisionLanguageModel::run(Seeing& program, std::span<const std::byte> pixels) {
  upload(device(), program.pixels.view(), pixels);
  program.program->run();
  std::vector<float> rows = download_as<float>(device(), program.program->view(program.rows));
  if (!std::ranges::all_of(rows, [](float value) { return std::isfinite(value); }))
    refuse_numbers(device(), &weights(), "embeddings of an image",
                   [] { return std::string("the network"); });
  return rows;
}

std::vector<float> VisionLanguageModel::embed(std::span<const uint32_t> pixels,
                                              const ImageNormalization& normalization) {
  const VisionTower& tower = config_.vision.tower;
  if (pixels.size() != uint64_t{tower.height} * tower.width_pixels)
    throw ModelError("image",
                     fmt::format("has {} pixels, the model takes {} by {}", pixels.size(),
                                 tower.width_pixels, tower.height),
                     "the files of the model disagree about the size of images");
  return run(seeing(DataType::kU32, normalization), std::as_bytes(pixels));
}

NamedArrays VisionLanguageModel::forward(const NamedArrays& inputs,
                                         std::span<const std::string> wanted) {
  const auto found = inputs.find("pixel_values");
  if (found == inputs.end()) return DecoderModel::forward(inputs, wanted);
  const VisionTower& tower = config_.vision.tower;
  std::vector<uint64_t> shape = found->second.shape;
  if (shape.size() == 5 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() != 4 || shape[0] > 1024 || shape[1] != tower.channels ||
      shape[2] != tower.height || shape[3] != tower.width_pixels)
    throw ModelError(family() + " input `pixel_values`",
                     fmt::format("is not there as (images, {}, {}, {})", tower.channels,
                                 tower.height, tower.width_pixels),
                     "");
  const std::vector<float> values(found->second.values.begin(), found->second.values.end());
  const size_t of_image = values.size() / std::max<size_t>(shape[0], 1);
  std::vector<float> rows;
  for (uint64_t i = 0; i < shape[0]; ++i) {
    const auto pixels = std::span(values).subspan(i * of_image, of_image);
    const std::vector<float> one = run(seeing(DataType::kF32, {}), std::as_bytes(pixels));
    rows.insert(rows.end(), one.begin(), one.end());
  }
  const uint64_t width = network().width();
  NamedArrays results;
  if (inputs.count("input_ids") > 0) {
    const PaddedIds ids =
        read_padded_ids(family(), inputs, "input_ids", config_.text.vocabulary, network().context);
    std::vector<GivenRows> given;
    size_t used = 0;
    for (uint32_t i = 0; i < ids.ids.size(); ++i)
      if (ids.ids[i] == config_.image_token && ++used * width <= rows.size())
        given.push_back({i, std::span(rows).subspan((used - 1) * width, width)});
    if (ids.rows != 1 || used * width != rows.size())
      throw ModelError(family() + " input `input_ids`",
                       fmt::format("has {} rows and {} tokens of images, which have {} embeddings",
                                   ids.rows, used, rows.size() / width),
                       "");
    results = forward_given(inputs, wanted, given);
  }
  results["image_features"] = {{rows.size() / width, width}, {rows.begin(), rows.end()}};
  keep_wanted(results, wanted);
  return results;
}

}  // namespace mulciber
