// The weight table of vision transformers and the text encoders trained with them.
#include <fmt/format.h>

#include "models/core/linear_weights.h"
#include "models/networks/vision_network.h"

namespace mulciber {
namespace {

class VisionTableWriter {
 public:
  VisionTableWriter(const VisionConfig& config, const Checkpoint& checkpoint)
      : config_(config), checkpoint_(checkpoint) {}

  WeightTable write() {
    vision_tower();
    if (config_.texts) texts(*config_.texts);
    const uint64_t labels = config_.labels.size(), D = config_.tower.width;
    if (config_.head != VisionHead::kNone) {
      const uint64_t read = config_.head == VisionHead::kClassAndMean ? 2 * D : D;
      add_linear(table_, "classifier", {{{config_.classifier}, labels}}, read, true);
      if (config_.teacher) add_linear(table_, "teacher", {{{config_.teacher}, labels}}, D, true);
    }
    return std::move(table_);
  }

 private:
  static WeightNames named(const TowerConfig& tower, const std::string& part) {
    WeightNames names;
    for (const char* prefix : tower.names.prefixes) names.push_back(prefix + part);
    return names;
  }
  bool there(const WeightNames& names) const {
    for (const std::string& name : names)
      if (checkpoint_.find(name)) return true;
    return false;
  }
  void plain(const std::string& name, WeightRole role, Shape shape, WeightNames names,
             Shape in_file) {
    table_.push_back({name, role, shape, {{std::move(names), in_file}}});
  }
  void norm(const std::string& name, const WeightNames& parts, uint64_t width) {
    table_.push_back(
        {name,
         WeightRole::kVector,
         {2, width},
         {{with_ending(parts, ".weight"), {width}}, {with_ending(parts, ".bias"), {width}}}});
  }
  /// Adds a projection whose rows are multiplied with LayerScale factors.
  void scaled_linear(const std::string& name, const WeightNames& part, uint64_t rows,
                     uint64_t columns, bool bias, const WeightNames& scales) {
    const size_t first = table_.size();
    add_linear(table_, name, {{part, rows}}, columns, bias);
    for (size_t i = first; i < table_.size(); ++i)
      for (WeightSource& source : table_[i].sources) source.row_scales = scales;
  }

  void stack(const std::string& tower_name, const TowerConfig& tower) {
    const TowerNames& names = tower.names;
    const uint64_t D = tower.width, F = tower.hidden;
    for (uint32_t i = 0; i < tower.layers; ++i) {
      const std::string name = fmt::format("{}layers.{}.", tower_name, i);
      const auto file = [&](const char* part) {
        return part ? named(tower, fmt::format("{}{}.{}", names.layer, i, part)) : WeightNames();
      };
      norm(name + "attention_norm", file(names.attention_norm), D);
      add_linear(table_, name + "qkv", {{file(names.q), D}, {file(names.k), D}, {file(names.v), D}},
                 D, tower.attention_bias);
      scaled_linear(name + "out", file(names.attention_out), D, D, true,
                    file(names.attention_scale));
      norm(name + "feed_forward_norm", file(names.feed_forward_norm), D);
      const WeightNames up = file(names.up);
      if (tower.gated)
        add_linear(table_, name + "up", {{up, F, 2 * F, 0}, {up, F, 2 * F, F}}, D, true, true);
      else
        add_linear(table_, name + "up", {{up, F}}, D, true);
      scaled_linear(name + "down", file(names.down), D, F, true, file(names.feed_forward_scale));
    }
    if (names.final_norm) norm(tower_name + "final_norm", named(tower, names.final_norm), D);
  }

  void vision_tower() {
    const VisionTower& tower = config_.tower;
    const uint64_t D = tower.width, C = tower.channels, P = tower.patch, T = tower.tokens();
    const WeightNames patches = named(tower, tower.patches);
    plain("patches", WeightRole::kMatrix, {D, C * P * P}, with_ending(patches, ".weight"),
          {D, C, P, P});
    if (tower.patch_bias)
      plain("patches.bias", WeightRole::kVector, {D}, with_ending(patches, ".bias"), {D});
    for (size_t i = 0; i < tower.first_tokens.size(); ++i) {
      const Shape in_file = tower.positions_in_batch ? Shape{1, 1, D} : Shape{D};
      plain(fmt::format("first_token.{}", i), WeightRole::kVector, {D},
            named(tower, tower.first_tokens[i]), in_file);
    }
    plain("positions", WeightRole::kVector, {T, D}, named(tower, tower.positions),
          tower.positions_in_batch ? Shape{1, T, D} : Shape{T, D});
    if (tower.embedding_norm) norm("embedding_norm", named(tower, tower.embedding_norm), D);
    stack("", tower);
    if (tower.pooled_norm) norm("pooled_norm", named(tower, tower.pooled_norm), D);
    if (tower.attention_head) attention_head(tower);
    if (tower.pooler && config_.head == VisionHead::kNone)
      if (const WeightNames pooler = named(tower, tower.pooler);
          there(with_ending(pooler, ".weight")))
        add_linear(table_, "pooler", {{pooler, D}}, D, true);
    if (config_.projection > 0)
      add_linear(table_, "projection", {{{"visual_projection"}, config_.projection}}, D, false);
  }

  void attention_head(const VisionTower& tower) {
    const uint64_t D = tower.width, F = tower.hidden;
    const auto file = [&](const char* part) {
      return named(tower, fmt::format("{}.{}", tower.attention_head, part));
    };
    plain("head.probe", WeightRole::kVector, {1, D}, file("probe"), {1, 1, D});
    const auto projection = [&](const char* name, uint64_t first, uint64_t rows) {
      table_.push_back(
          {std::string(name) + ".weight",
           WeightRole::kMatrix,
           {rows, D},
           {{file("attention.in_proj_weight"), {rows, D}, SourceForm::kAsInFile, 3 * D, first}}});
      table_.push_back(
          {std::string(name) + ".bias",
           WeightRole::kVector,
           {rows},
           {{file("attention.in_proj_bias"), {rows}, SourceForm::kAsInFile, 3 * D, first}}});
    };
    projection("head.query", 0, D);
    projection("head.key_value", D, 2 * D);
    add_linear(table_, "head.out", {{file("attention.out_proj"), D}}, D, true);
    norm("head.norm", file("layernorm"), D);
    add_linear(table_, "head.up", {{file("mlp.fc1"), F}}, D, true);
    add_linear(table_, "head.down", {{file("mlp.fc2"), D}}, F, true);
  }

  void texts(const TextTower& tower) {
    const uint64_t D = tower.width;
    const auto table = [&](const char* name, const char* part, uint64_t rows, WeightRole role) {
      plain(name, role, {rows, D}, with_ending(named(tower, part), ".weight"), {rows, D});
    };
    table("text.words", tower.words, tower.vocabulary, WeightRole::kMatrix);
    table("text.positions", tower.positions, tower.context, WeightRole::kVector);
    stack("text.", tower);
    if (tower.head) add_linear(table_, "text.head", {{named(tower, tower.head), D}}, D, true);
    if (config_.projection > 0)
      add_linear(table_, "text.projection", {{{"text_projection"}, config_.projection}}, D, false);
    // The file holds a scalar, or a list of one value.
    for (const char* name : {"logit_scale", "logit_bias"}) {
      if (name == std::string("logit_bias") && !config_.logit_bias) continue;
      const CheckpointTensor* tensor = checkpoint_.find(name);
      const bool scalar = tensor && tensor->shape.empty();
      plain(name, WeightRole::kVector, {1}, {name}, scalar ? Shape{} : Shape{1});
    }
  }

  const VisionConfig& config_;
  const Checkpoint& checkpoint_;
  WeightTable table_;
};

}  // namespace

WeightTable vision_weight_table(const VisionConfig& config, const Checkpoint& checkpoint) {
  return VisionTableWriter(config, checkpoint).write();
}

}  // namespace mulciber
