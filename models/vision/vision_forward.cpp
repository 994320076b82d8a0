// The outputs of transformers' classes, by their names, and attention maps.
#include <fmt/format.h>

#include "models/core/device_weights.h"
#include "models/core/padded_ids.h"
#include "models/core/vector_cosines.h"
#include "models/vision/image_pass.h"
#include "models/vision/vision_model.h"
#include "mulciber/error.h"
#include "runtime/transfer.h"

namespace mulciber {
namespace {

/// The size of a forward pass's pixels, (images, channels, height, width).
ImageSize size_of_pixels(const std::string& family, const NamedArray& pixels, uint32_t channels) {
  const std::vector<uint64_t>& shape = pixels.shape;
  if (shape.size() != 4 || shape[0] == 0 || shape[0] > 1024 || shape[1] != channels ||
      shape[2] > 1 << 14 || shape[3] > 1 << 14)
    throw ModelError(family + " input `pixel_values`", "has another shape than images have",
                     fmt::format("give (images, {}, height, width)", channels));
  return {static_cast<uint32_t>(shape[2]), static_cast<uint32_t>(shape[3])};
}

struct TracedResults {
  Device& device;
  const Program& program;
  const Trace& trace;
  NamedArrays& results;

  std::vector<double> values(const std::string& name) const {
    const std::vector<float> found = download_as<float>(device, program.view(trace.at(name)));
    return {found.begin(), found.end()};
  }
  void add(const char* name, const char* traced, std::vector<uint64_t> shape) const {
    results[name] = {std::move(shape), values(traced)};
  }
};

}  // namespace

void VisionModel::forward_images(const NamedArrays& inputs, std::span<const std::string> wanted,
                                 NamedArrays& results) {
  const NamedArray& pixels = inputs.at("pixel_values");
  const VisionTower& tower = config_.tower;
  const ImageSize size = size_of_pixels(family_, pixels, tower.channels);
  check_size(size);
  const uint64_t rows = pixels.shape[0], tokens = tokens_of(size), D = tower.width;
  const std::vector<float> values(pixels.values.begin(), pixels.values.end());
  const Buffer buffer =
      device_.memory().allocate(values.size() * sizeof(float), MemoryUsage::kActivations);
  Trace trace;
  trace.hidden_states = wants(wanted, "hidden_states");
  trace.attentions = wants(wanted, "attentions");
  const bool joint = config_.texts && !wants(wanted, "last_hidden_state");
  ProgramBuilder builder(device_, "forward");
  const Tensor states = network_.tower.states(
      builder, buffer.tensor({rows, tower.channels, size.height, size.width}, DataType::kF32),
      *start_of(size), {}, &trace);
  {
    const auto scope = builder.layer("result");
    trace.keep(builder, "states", states);
    if (network_.tower.has_pooler())
      trace.keep(builder, "pooler", network_.tower.pooler_output(builder, states));
    else if (config_.head == VisionHead::kNone)
      trace.keep(builder, "pooler", network_.tower.pooled(builder, states));
    if (config_.head != VisionHead::kNone)
      trace.keep(builder, "logits", network_.tower.logits(builder, states));
    if (joint)
      trace.keep(builder, "embeds",
                 unit_length(builder, network_.tower.projected(builder, states)));
  }
  Program program = builder.build();
  upload(device_, buffer.view(), std::as_bytes(std::span(values)));
  program.run();

  const TracedResults traced = {device_, program, trace, results};
  traced.add("last_hidden_state", "result.states", {rows, tokens, D});
  if (config_.head == VisionHead::kNone) traced.add("pooler_output", "result.pooler", {rows, D});
  if (config_.head != VisionHead::kNone) {
    traced.add("logits", "result.logits", {rows, config_.labels.size()});
    if (config_.head == VisionHead::kClassAndTeacher)
      for (double& value : results["logits"].values) value /= 2;
  }
  if (joint) {
    traced.add("image_embeds", "result.embeds", {rows, 0});
    results["image_embeds"].shape[1] = results["image_embeds"].values.size() / rows;
  }
  if (trace.hidden_states) {
    NamedArray all = {{tower.layers + 1, rows, tokens, D}, traced.values("embedding.output")};
    for (uint32_t i = 0; i < tower.layers; ++i) {
      const std::vector<double> layer = traced.values(fmt::format("layers.{}.output", i));
      all.values.insert(all.values.end(), layer.begin(), layer.end());
    }
    results["hidden_states"] = std::move(all);
  }
  if (trace.attentions) {
    NamedArray all = {{tower.layers, rows, tower.heads, tokens, tokens}, {}};
    for (uint32_t i = 0; i < tower.layers; ++i) {
      const std::vector<double> layer =
          traced.values(fmt::format("layers.{}.self_attn.probabilities", i));
      all.values.insert(all.values.end(), layer.begin(), layer.end());
    }
    results["attentions"] = std::move(all);
  }
}

void VisionModel::forward_texts(const NamedArrays& inputs, NamedArrays& results) {
  const TextTower& tower = *config_.texts;
  const PaddedIds ids =
      read_padded_ids(family_, inputs, "input_ids", tower.vocabulary, tower.context);
  const TextTowerControl layout = plan_text_control(ids.rows, ids.length);
  const Buffer control = device_.memory().allocate(uint64_t{layout.words} * sizeof(uint32_t),
                                                   MemoryUsage::kActivations);
  ControlWords words(layout.words);
  words.set(layout.tokens, ids.ids);
  for (uint32_t row = 0; row < ids.rows; ++row) {
    const uint32_t first = row * ids.length;
    const uint32_t end =
        tower.padded ? ids.length - 1
                     : network_.texts->end_of(std::span(ids.ids).subspan(first, ids.length));
    words.set(layout.ends, row, first + end);
  }
  const Tensor control_tensor = control.tensor({layout.words}, DataType::kU32);
  Trace trace;
  ProgramBuilder builder(device_, "forward");
  const Tensor states = network_.texts->states(builder, control_tensor, layout);
  {
    const auto scope = builder.layer("result");
    trace.keep(builder, "states", states);
    const Tensor pooled = network_.texts->pooled(builder, states, control_tensor, layout);
    trace.keep(builder, "pooler", pooled);
    trace.keep(builder, "embeds", unit_length(builder, network_.texts->projected(builder, pooled)));
  }
  Program program = builder.build();
  upload(device_, control.view(), words.bytes());
  program.run();
  const TracedResults traced = {device_, program, trace, results};
  if (inputs.count("pixel_values") == 0) {
    traced.add("last_hidden_state", "result.states", {ids.rows, ids.length, tower.width});
    traced.add("pooler_output", "result.pooler", {ids.rows, tower.width});
  }
  traced.add("text_embeds", "result.embeds", {ids.rows, 0});
  results["text_embeds"].shape[1] = results["text_embeds"].values.size() / ids.rows;
}

NamedArrays VisionModel::forward(const NamedArrays& inputs, std::span<const std::string> wanted) {
  NamedArrays results;
  if (inputs.count("pixel_values") > 0) forward_images(inputs, wanted, results);
  if (inputs.count("input_ids") > 0 && config_.texts) forward_texts(inputs, results);
  if (results.empty())
    throw ModelError(family_ + " model", "was given neither pixel_values nor ids that it reads",
                     "give `pixel_values`");
  if (results.count("image_embeds") > 0 && results.count("text_embeds") > 0) {
    const NamedArray &images = results["image_embeds"], &texts = results["text_embeds"];
    const uint64_t columns = images.shape[1];
    NamedArray of_images = {{images.shape[0], texts.shape[0]}, {}};
    NamedArray of_texts = {{texts.shape[0], images.shape[0]},
                           std::vector<double>(images.shape[0] * texts.shape[0])};
    for (uint64_t i = 0; i < images.shape[0]; ++i) {
      for (uint64_t j = 0; j < texts.shape[0]; ++j) {
        double cosine = 0;
        for (uint64_t k = 0; k < columns; ++k)
          cosine += images.values[i * columns + k] * texts.values[j * columns + k];
        of_images.values.push_back(cosine * network_.logit_scale + network_.logit_bias);
        of_texts.values[j * images.shape[0] + i] = of_images.values.back();
      }
    }
    results["logits_per_image"] = std::move(of_images);
    results["logits_per_text"] = std::move(of_texts);
  }
  keep_wanted(results, wanted);
  return results;
}

uint64_t VisionModel::map_bytes(ImageSize size) const {
  constexpr uint64_t kMostBytes = 1 << 30;
  const VisionTower& tower = config_.tower;
  const uint64_t tokens = tokens_of(size),
                 bytes = tokens * tokens * tower.heads * tower.layers * sizeof(float);
  if (bytes > kMostBytes)
    throw ModelError("attention maps",
                     fmt::format("of {} layers and {} heads over {} tokens take {} bytes",
                                 tower.layers, tower.heads, tokens, bytes),
                     fmt::format("at most {} are made", kMostBytes));
  return bytes;
}

std::unique_ptr<ImagePass> VisionModel::start(const ImageStart& start) {
  ImageRequest request;
  request.size = start.size;
  request.output = start.output;
  if (!start.from) request.pixels = std::span(&start.pixels, 1);
  check(request);
  const uint64_t maps = start.attention ? map_bytes(start.size) : 0;
  require_memory(device_, batch_bytes(1, start.size) + maps, memory_limit_,
                 fmt::format("an image of {} by {} pixels", start.size.width, start.size.height));
  return std::make_unique<ImagePass>(device_, network_.tower, config_.tower, start_of(start.size),
                                     start);
}

std::vector<float> VisionModel::attention_maps(const ImageRequest& request) {
  check(request);
  const VisionTower& tower = config_.tower;
  const std::vector<uint32_t>& pixels = request.pixels.front();
  map_bytes(request.size);
  const Buffer buffer =
      device_.memory().allocate(pixels.size() * sizeof(uint32_t), MemoryUsage::kActivations);
  Trace trace;
  trace.attentions = true;
  ProgramBuilder builder(device_, "attention");
  const Tensor states = network_.tower.states(
      builder, buffer.tensor({1, request.size.height, request.size.width}, DataType::kU32),
      *start_of(request.size), request.normalization, &trace);
  builder.keep(states);
  Program program = builder.build();
  upload(device_, buffer.view(), std::as_bytes(std::span(pixels)));
  program.run();
  std::vector<float> maps;
  for (uint32_t i = 0; i < tower.layers; ++i) {
    const std::vector<float> layer = download_as<float>(
        device_, program.view(trace.at(fmt::format("layers.{}.self_attn.probabilities", i))));
    maps.insert(maps.end(), layer.begin(), layer.end());
  }
  return maps;
}

}  // namespace mulciber
