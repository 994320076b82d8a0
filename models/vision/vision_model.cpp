#include "models/vision/vision_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/finite.h"
#include "models/adapters/weights_load.h"
#include "models/core/padded_ids.h"
#include "models/core/recently_used.h"
#include "models/core/vector_cosines.h"
#include "models/families/registry.h"
#include "models/generation/not_finite.h"
#include "models/vision/image_pass.h"
#include "mulciber/error.h"
#include "runtime/transfer.h"

namespace mulciber {
namespace {

constexpr size_t kImageProgramsKept = 8, kTextProgramsKept = 4;
constexpr uint32_t kMostImages = 256;
// Lengths of texts are rounded up, so that few programs serve all texts.
constexpr uint32_t kTowerLengthStep = 8;

/// Rounds the images of a batch up to 1, 2, 3, 4, 6, 8, 12, ...: at most a third of it is padding.
uint32_t rounded_images(uint32_t rows) {
  const uint32_t power = std::bit_ceil(rows), between = power / 4 * 3;
  return rows <= between ? between : power;
}

}  // namespace

struct VisionModel::ImageShape {
  uint32_t rows;
  ImageSize size;
  ImageNormalization normalization;
  ImageOutput output;
  bool normalized;
  bool operator==(const ImageShape&) const = default;
};

struct VisionModel::ImagePrograms {
  ImageShape shape;
  Buffer pixels;
  Tensor result;
  std::optional<Program> program;

  ImagePrograms(Device& device, const VisionTowerNetwork& network, const Tensor& start,
                const ImageShape& wanted)
      : shape(wanted) {
    const uint64_t count = uint64_t{shape.rows} * shape.size.height * shape.size.width;
    pixels = device.memory().allocate(count * sizeof(uint32_t), MemoryUsage::kActivations);
    ProgramBuilder builder(device, "see");
    const Tensor states = network.states(
        builder, pixels.tensor({shape.rows, shape.size.height, shape.size.width}, DataType::kU32),
        start, shape.normalization);
    const auto scope = builder.layer("output");
    result = image_output(builder, network, shape.output, states);
    if (shape.normalized) result = unit_length(builder, result);
    builder.keep(result);
    program = builder.build();
  }
};

struct VisionModel::TextPrograms {
  TextTowerControl layout;
  Buffer control;
  Tensor result;
  std::optional<Program> program;

  TextPrograms(Device& device, const TextTowerNetwork& network, uint32_t rows, uint32_t length)
      : layout(plan_text_control(rows, length)) {
    control = device.memory().allocate(uint64_t{layout.words} * sizeof(uint32_t),
                                       MemoryUsage::kActivations);
    const Tensor words = control.tensor({layout.words}, DataType::kU32);
    ProgramBuilder builder(device, "read");
    const Tensor states = network.states(builder, words, layout);
    const auto scope = builder.layer("output");
    const Tensor pooled = network.pooled(builder, states, words, layout);
    result = unit_length(builder, network.projected(builder, pooled));
    builder.keep(result);
    program = builder.build();
  }
};

VisionModel::VisionModel(Device& device, const Checkpoint& checkpoint, const VisionConfig& config,
                         const ModelOptions& options)
    : device_(device),
      family_(model_type(checkpoint)),
      config_(config),
      half_precision_(options.activations == DataType::kF16 ||
                      options.matrices == MatrixStorage::kF16),
      activations_(options.activations),
      memory_limit_(options.memory_limit),
      weights_(weights_of(device, declared_weights<VisionNetwork>(config, checkpoint).table(),
                          checkpoint, family_, options)),
      network_(loaded_network<VisionNetwork>(device, weights_, checkpoint, config,
                                             options.activations)) {}

VisionModel::~VisionModel() = default;

Extents VisionModel::extents() const { return extents_of(config_); }

uint64_t VisionModel::tokens_of(ImageSize size) const {
  const uint32_t patch = config_.tower.patch;
  return config_.tower.first_tokens.size() + uint64_t{size.height / patch} * (size.width / patch);
}

uint64_t VisionModel::batch_bytes(uint32_t rows, ImageSize size) const {
  return uint64_t{rows} * (uint64_t{size.height} * size.width * sizeof(uint32_t) +
                           tokens_of(size) * network_.tower.live_columns() * size_of(activations_));
}

uint32_t VisionModel::batch_limit(ImageSize size) {
  check_size(size);
  const uint64_t available = device_.memory().available();
  const uint64_t memory = memory_limit_ > 0 ? std::min(memory_limit_, available) : available;
  const uint64_t row_bytes =
      std::max(tokens_of(size) * network_.tower.widest_columns() * size_of(DataType::kF32),
               uint64_t{size.height} * size.width * sizeof(uint32_t));
  uint32_t best = 1;
  // Only half of the memory counts: the programs of another shape may still be there.
  for (uint32_t rows = 1; rows <= kMostImages; ++rows) {
    const uint32_t rounded = rounded_images(rows);
    if (rounded * row_bytes > device_.capabilities().max_storage_range ||
        batch_bytes(rounded, size) > memory / 2)
      break;
    best = rows;
  }
  return best;
}

void VisionModel::check_size(ImageSize size) const {
  const VisionTower& tower = config_.tower;
  if (size == ImageSize{tower.height, tower.width_pixels}) return;
  constexpr uint32_t kMostSide = 16384;
  const bool whole = size.height > 0 && size.width > 0 && size.height <= kMostSide &&
                     size.width <= kMostSide && size.height % tower.patch == 0 &&
                     size.width % tower.patch == 0;
  if (tower.any_size && whole && tokens_of(size) <= 1 << 16) return;
  throw ModelError(family_ + " model",
                   fmt::format("cannot take images of {} by {} pixels", size.width, size.height),
                   tower.any_size
                       ? fmt::format("give a multiple of {} each way", tower.patch)
                       : fmt::format("it takes {} by {}", tower.width_pixels, tower.height));
}

std::shared_ptr<const Tensor> VisionModel::start_of(ImageSize size) {
  for (const auto& start : starts_)
    if (start->size == size) return {start, &start->tensor};
  const std::vector<float> values = network_.tower.first_states(device_, size);
  const auto start = std::make_shared<Start>();
  start->size = size;
  start->buffer = device_.memory().allocate(values.size() * sizeof(float), MemoryUsage::kWeights);
  upload(device_, start->buffer.view(), std::as_bytes(std::span(values)));
  start->tensor = start->buffer.tensor({values.size() / config_.tower.width, config_.tower.width},
                                       DataType::kF32);
  starts_.push_back(start);
  return {start, &start->tensor};
}

void VisionModel::trim() {
  programs_.clear();
  text_programs_.clear();
  // Running tasks keep the first states that they read.
  std::erase_if(starts_, [](const auto& start) { return start.use_count() == 1; });
}

VisionModel::ImagePrograms& VisionModel::programs(const ImageShape& shape) {
  if (const auto* found =
          recently_used(programs_, [&](const auto& entry) { return entry->shape == shape; }))
    return **found;
  const uint64_t bytes = batch_bytes(shape.rows, shape.size);
  while (!programs_.empty() &&
         (programs_.size() >= kImageProgramsKept || bytes > device_.memory().available()))
    programs_.pop_back();
  require_memory(device_, bytes, memory_limit_,
                 fmt::format("a batch of {} images of {} by {} pixels", shape.rows,
                             shape.size.width, shape.size.height));
  programs_.push_front(
      std::make_unique<ImagePrograms>(device_, network_.tower, *start_of(shape.size), shape));
  return *programs_.front();
}

void VisionModel::check(const ImageRequest& request) const {
  check_size(request.size);
  if (request.output == ImageOutput::kLogits && config_.head == VisionHead::kNone)
    throw ModelError(family_ + " model", "was not trained to label images",
                     "use a checkpoint whose class ends in ForImageClassification");
  for (const std::vector<uint32_t>& pixels : request.pixels)
    if (pixels.size() != uint64_t{request.size.height} * request.size.width)
      throw ModelError("image",
                       fmt::format("has {} pixels, not {} by {}", pixels.size(), request.size.width,
                                   request.size.height),
                       "images of a batch are of one size");
}

EncoderResult VisionModel::see(const ImageRequest& request) {
  if (request.pixels.empty()) return {};
  check(request);
  const auto start = Clock::now();
  const ImageShape shape = {rounded_images(static_cast<uint32_t>(request.pixels.size())),
                            request.size, request.normalization, request.output,
                            request.normalized};
  ImagePrograms& programs = this->programs(shape);
  std::vector<uint32_t> words;
  for (const std::vector<uint32_t>& pixels : request.pixels)
    words.insert(words.end(), pixels.begin(), pixels.end());
  words.resize(uint64_t{shape.rows} * shape.size.height * shape.size.width);
  EncoderResult result;
  result.predicted_bytes = batch_bytes(shape.rows, shape.size);
  result.prepare_seconds = seconds_since(start);

  const auto running = Clock::now();
  upload(device_, programs.pixels.view(), std::as_bytes(std::span(words)));
  programs.program->run();
  std::vector<float> values = download_as<float>(device_, programs.program->view(programs.result));
  result.run_seconds = seconds_since(running);
  const bool halves =
      request.output == ImageOutput::kLogits && config_.head == VisionHead::kClassAndTeacher;
  const size_t of_image = values.size() / shape.rows;
  for (size_t row = 0; row < request.pixels.size(); ++row) {
    const std::span<float> part = std::span(values).subspan(row * of_image, of_image);
    for (float& value : part) value *= halves ? 0.5f : 1.0f;
    if (!std::ranges::all_of(part, [](float value) { return std::isfinite(value); }))
      refuse_numbers(device_, &weights_, "states of an image",
                     [] { return std::string("the network"); });
    result.values.emplace_back(part.begin(), part.end());
  }
  return result;
}

VisionModel::TextPrograms& VisionModel::text_programs(uint32_t rows, uint32_t length) {
  if (const auto* found = recently_used(text_programs_, [&](const auto& entry) {
        return entry->layout.rows == rows && entry->layout.length == length;
      }))
    return **found;
  if (text_programs_.size() >= kTextProgramsKept) text_programs_.pop_back();
  text_programs_.push_front(std::make_unique<TextPrograms>(device_, *network_.texts, rows, length));
  return *text_programs_.front();
}

EncoderResult VisionModel::read(std::span<const std::vector<uint32_t>> texts) {
  if (texts.empty()) return {};
  if (!network_.texts)
    throw ModelError(family_ + " model", "has no tower of texts",
                     "use a checkpoint of CLIP or SigLIP");
  const TextTower& tower = *config_.texts;
  size_t longest = 0;
  for (const std::vector<uint32_t>& ids : texts) {
    longest = std::max(longest, ids.size());
    if (ids.empty() || ids.size() > tower.context)
      throw ModelError(
          "text", fmt::format("has {} tokens, the model takes 1 to {}", ids.size(), tower.context),
          "shorten it");
    for (const uint32_t id : ids)
      if (id >= tower.vocabulary)
        throw ModelError(
            "text",
            fmt::format("holds token id {}, the model's are below {}", id, tower.vocabulary),
            "tokenizer and model do not belong together");
  }
  const auto start = Clock::now();
  const auto rounded =
      static_cast<uint32_t>((longest + kTowerLengthStep - 1) / kTowerLengthStep * kTowerLengthStep);
  const uint32_t length = tower.padded ? tower.context : std::min(rounded, tower.context);
  TextPrograms& programs =
      text_programs(rounded_images(static_cast<uint32_t>(texts.size())), length);
  const TextTowerControl& layout = programs.layout;
  ControlWords words(layout.words);
  words.fill(layout.tokens, tower.pad);
  for (uint32_t row = 0; row < layout.rows; ++row) {
    const uint32_t first = row * length;
    uint32_t end = 0;
    if (row < texts.size()) {
      words.set(layout.tokens.part(first, texts[row].size()), texts[row]);
      end = tower.padded ? length - 1 : network_.texts->end_of(texts[row]);
    }
    words.set(layout.ends, row, first + end);
  }
  EncoderResult result;
  result.prepare_seconds = seconds_since(start);
  const auto running = Clock::now();
  upload(device_, programs.control.view(), words.bytes());
  programs.program->run();
  const std::vector<float> values =
      download_as<float>(device_, programs.program->view(programs.result));
  result.run_seconds = seconds_since(running);
  const size_t of_text = values.size() / layout.rows;
  for (size_t row = 0; row < texts.size(); ++row) {
    const auto part = std::span(values).subspan(row * of_text, of_text);
    if (!std::ranges::all_of(part, [](float value) { return std::isfinite(value); }))
      refuse_numbers(device_, &weights_, "states of a text",
                     [] { return std::string("the network"); });
    result.values.emplace_back(part.begin(), part.end());
  }
  return result;
}

}  // namespace mulciber
