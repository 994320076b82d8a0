// The weight table of encoder-only networks.
#include <fmt/format.h>

#include "models/core/linear_weights.h"
#include "models/networks/text_encoder_network.h"

namespace mulciber {
namespace {

class EncoderTableWriter {
 public:
  EncoderTableWriter(const EncoderConfig& config, const Checkpoint& checkpoint)
      : config_(config), names_(config.names), checkpoint_(checkpoint) {}

  WeightTable write() {
    embedding();
    for (uint32_t i = 0; i < config_.layer_weights(); ++i) layer(i);
    if (names_.final_norm) norm("final_norm", in_stack(names_.final_norm), config_.width);
    const uint64_t D = config_.width;
    switch (config_.task) {
      case EncoderTask::kClassify: head(); break;
      case EncoderTask::kAnswer: linear("spans", {{{"qa_outputs"}, 2}}, D, true); break;
      case EncoderTask::kNone:
        if (names_.pooler && there(with_ending(in_stack(names_.pooler), ".weight")))
          linear("pooler", {{in_stack(names_.pooler), D}}, D, true);
        break;
    }
    return std::move(table_);
  }

 private:
  WeightNames in_stack(const std::string& part) const {
    WeightNames names;
    for (const char* prefix : names_.prefixes) names.push_back(prefix + part);
    return names;
  }
  bool there(const WeightNames& names) const {
    for (const std::string& name : names)
      if (checkpoint_.find(name)) return true;
    return false;
  }

  void matrix(const std::string& name, WeightRole role, const char* part, uint64_t rows,
              uint64_t columns) {
    const Shape shape = {rows, columns};
    table_.push_back({name, role, shape, {{with_ending(in_stack(part), ".weight"), shape}}});
  }

  void linear(const std::string& name, const std::vector<LinearPart>& parts, uint64_t columns,
              bool bias, bool interleaved = false) {
    add_linear(table_, name, parts, columns, bias, interleaved);
  }

  /// Checkpoints converted from TensorFlow name gain and bias gamma and beta.
  void norm(const std::string& name, const WeightNames& parts, uint64_t width) {
    const auto either = [&](const char* now, const char* before) {
      WeightNames names = with_ending(parts, now);
      for (std::string& older : with_ending(parts, before)) names.push_back(std::move(older));
      return names;
    };
    WeightSource bias = {{}, {width}, SourceForm::kZeros};
    if (config_.norm_bias) bias = {either(".bias", ".beta"), {width}};
    table_.push_back({name,
                      WeightRole::kVector,
                      {2, width},
                      {{either(".weight", ".gamma"), {width}}, std::move(bias)}});
  }

  void embedding() {
    const EncoderEmbedding& embedding = config_.embedding;
    const uint64_t E = embedding.columns;
    matrix("words", WeightRole::kMatrix, names_.words, config_.vocabulary, E);
    if (embedding.positions != EncoderPositions::kNone)
      matrix("positions", WeightRole::kVector, names_.positions, embedding.position_rows, E);
    if (embedding.types > 0) matrix("types", WeightRole::kVector, names_.types, embedding.types, E);
    norm("embedding_norm", in_stack(names_.embedding_norm), E);
    if (E != config_.width) linear("project", {{in_stack(names_.project), config_.width}}, E, true);
    if (config_.disentangled) {
      matrix("distances", WeightRole::kVector, names_.distances,
             2 * uint64_t{config_.disentangled->span}, config_.width);
      if (config_.disentangled->norm)
        norm("distances_norm", in_stack(names_.distances_norm), config_.width);
    }
    if (config_.relative_bias)
      matrix("relative_bias", WeightRole::kVector, names_.relative_bias,
             config_.relative_bias->buckets, config_.heads);
  }

  void layer(uint32_t i) {
    const uint64_t D = config_.width, F = config_.hidden;
    const std::string name = fmt::format("layers.{}.", i);
    const auto file = [&](const char* part) {
      return in_stack(fmt::format("{}{}.{}", names_.layer, i, part));
    };
    const bool bias = config_.feed_forward_bias;
    if (names_.qkv) {
      linear(name + "qkv", {{file(names_.qkv), 3 * D}}, D, config_.attention_bias);
    } else {
      linear(name + "qkv", {{file(names_.q), D}, {file(names_.k), D}, {file(names_.v), D}}, D,
             config_.attention_bias);
    }
    linear(name + "out", {{file(names_.attention_out), D}}, D, config_.attention_bias);
    if (config_.layers[i].attention_norm)
      norm(name + "attention_norm", file(names_.attention_norm), D);
    if (!config_.gated) {
      linear(name + "up", {{file(names_.up), F}}, D, bias);
    } else if (names_.gate_up) {
      const WeightNames both = file(names_.gate_up);
      linear(name + "up", {{both, F, 2 * F, 0}, {both, F, 2 * F, F}}, D, bias, true);
    } else {
      linear(name + "up", {{file(names_.gate), F}, {file(names_.up), F}}, D, bias, true);
    }
    linear(name + "down", {{file(names_.down), D}}, F, bias);
    norm(name + "feed_forward_norm", file(names_.feed_forward_norm), D);
  }

  void head() {
    const EncoderHead& head = config_.head;
    const uint64_t D = config_.width;
    if (head.dense) {
      const WeightNames dense =
          head.dense_in_stack ? in_stack(head.dense) : WeightNames{head.dense};
      linear("head.dense", {{dense, D}}, D, head.dense_bias);
    }
    if (head.norm) norm("head.norm", {head.norm}, D);
    linear("head.output", {{{head.output}, config_.labels.size()}}, D, head.output_bias);
  }

  const EncoderConfig& config_;
  const EncoderNames& names_;
  const Checkpoint& checkpoint_;
  WeightTable table_;
};

}  // namespace

WeightTable text_encoder_weight_table(const EncoderConfig& config, const Checkpoint& checkpoint) {
  return EncoderTableWriter(config, checkpoint).write();
}

std::vector<ComputedAngles> computed_angles(const EncoderConfig& config) {
  std::vector<ComputedAngles> all;
  for (size_t i = 0; i < config.ropes.size(); ++i)
    all.push_back(
        {fmt::format("rope.{}", i), {config.context, config.ropes[i].rotated}, config.ropes[i]});
  return all;
}

}  // namespace mulciber
