#include "models/networks/decoder_network.h"

#include <map>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {
namespace {

using Names = std::vector<std::string>;

/// Every weight of a configuration, under its name here and its names in files.
class TableWriter {
 public:
  explicit TableWriter(const DecoderConfig& config) : config_(config), names_(config.names) {}

  WeightTable write() {
    const uint64_t D = config_.width;
    table_.push_back({"embedding",
                      WeightRole::kMatrix,
                      {config_.vocabulary, D},
                      {{weight(names_.embedding), {config_.vocabulary, D}}}});
    if (config_.ropes.empty())
      table_.push_back({"positions",
                        WeightRole::kVector,
                        {config_.max_positions, D},
                        {{weight(names_.positions), {config_.max_positions, D}}}});
    if (!config_.tied_output)
      table_.push_back(
          {"output",
           WeightRole::kMatrix,
           {config_.vocabulary, D},
           {{with(behind(names_.output_prefixes.empty() ? names_.prefixes : names_.output_prefixes,
                         names_.output),
                  ".weight"),
             {config_.vocabulary, D}}}});
    norm("first_norm", {in_layer(0, names_.attention_norm)});
    for (uint32_t i = 0; i < config_.layers.size(); ++i) layer(i);
    return std::move(table_);
  }

 private:
  /// A part of the model, or of a layer, without ".weight".
  Names global(const std::string& part) const { return behind(names_.prefixes, part); }
  static Names behind(std::span<const char* const> prefixes, const std::string& part) {
    Names names;
    for (const char* prefix : prefixes) names.push_back(prefix + part);
    return names;
  }
  Names in_layer(uint32_t index, const char* part) const {
    return global(fmt::format("{}{}.{}", names_.layer, index, part));
  }
  static Names with(Names names, const char* ending) {
    for (std::string& name : names) name += ending;
    return names;
  }
  Names weight(const char* part) const { return with(global(part), ".weight"); }

  /// parts: one norm, or the one of what joins the stream and then the stream's.
  void norm(const std::string& name, const std::vector<Names>& parts) {
    const uint64_t D = config_.width;
    const SourceForm form = config_.gains_less_one ? SourceForm::kPlusOne : SourceForm::kAsInFile;
    WeightSpec spec = {name, WeightRole::kVector, {}, {}};
    for (const Names& part : parts) {
      spec.sources.push_back({with(part, ".weight"), {D}, form});
      if (!config_.rms_norm) spec.sources.push_back({with(part, ".bias"), {D}});
    }
    spec.shape = spec.sources.size() == 1 ? Shape{D} : Shape{spec.sources.size(), D};
    table_.push_back(std::move(spec));
  }

  struct Part {
    Names names;
    uint64_t rows;
  };
  void linear(const std::string& name, const std::vector<Part>& parts, uint64_t columns, bool bias,
              bool interleaved = false) {
    uint64_t rows = 0;
    for (const Part& part : parts) rows += part.rows;
    const SourceForm form = config_.transposed ? SourceForm::kTransposed : SourceForm::kAsInFile;
    WeightSpec matrix = {name + ".weight", WeightRole::kMatrix, {rows, columns}, {}, interleaved};
    WeightSpec vector = {name + ".bias", WeightRole::kVector, {rows}, {}};
    for (const Part& part : parts) {
      matrix.sources.push_back({with(part.names, ".weight"), {part.rows, columns}, form});
      vector.sources.push_back({with(part.names, ".bias"), {part.rows}});
    }
    table_.push_back(std::move(matrix));
    if (bias) table_.push_back(std::move(vector));
  }

  void layer(uint32_t i) {
    const uint64_t D = config_.width, F = config_.hidden, H = config_.head_size;
    const uint64_t Q = config_.query_columns(), K = config_.key_columns();
    const std::string name = fmt::format("layers.{}.", i);
    const auto file = [&](const char* part) { return in_layer(i, part); };
    if (names_.qkv) {
      linear(name + "qkv", {{file(names_.qkv), Q + 2 * K}}, D, config_.qkv_bias);
    } else {
      linear(name + "qkv", {{file(names_.q), Q}, {file(names_.k), K}, {file(names_.v), K}}, D,
             config_.qkv_bias);
    }
    if (config_.qk_norm) {
      const SourceForm form = config_.gains_less_one ? SourceForm::kPlusOne : SourceForm::kAsInFile;
      table_.push_back({name + "qk_norm",
                        WeightRole::kVector,
                        {2, H},
                        {{with(file(names_.q_norm), ".weight"), {H}, form},
                         {with(file(names_.k_norm), ".weight"), {H}, form}}});
    }
    linear(name + "out", {{file(names_.attention_out), D}}, Q, config_.out_bias);
    if (config_.gated) {
      linear(name + "up", {{file(names_.gate), F}, {file(names_.up), F}}, D,
             config_.feed_forward_bias, true);
    } else {
      linear(name + "up", {{file(names_.up), F}}, D, config_.feed_forward_bias);
    }
    linear(name + "down", {{file(names_.down), D}}, F, config_.feed_forward_bias);

    std::vector<Names> after_attention = {file(names_.feed_forward_norm)};
    std::vector<Names> after_feed_forward = {i + 1 < config_.layers.size()
                                                 ? in_layer(i + 1, names_.attention_norm)
                                                 : global(names_.final_norm)};
    if (config_.norm_after) {
      after_attention.insert(after_attention.begin(), file(names_.after_attention_norm));
      after_feed_forward.insert(after_feed_forward.begin(), file(names_.after_feed_forward_norm));
    }
    norm(name + "after_attention", after_attention);
    norm(name + "after_feed_forward", after_feed_forward);
  }

  const DecoderConfig& config_;
  const DecoderNames& names_;
  WeightTable table_;
};

}  // namespace

WeightTable decoder_weight_table(const DecoderConfig& config) {
  return TableWriter(config).write();
}

std::vector<ComputedWeight> computed_decoder_weights(const DecoderConfig& config,
                                                     uint32_t positions) {
  std::vector<ComputedWeight> weights;
  for (size_t i = 0; i < config.ropes.size(); ++i) {
    const RopeConfig& rope = config.ropes[i];
    weights.push_back({fmt::format("rope.{}", i), {positions, rope.rotated}, [positions, rope] {
                         return rope_angles(positions, rope.rotated, rope.base, rope.scaling);
                       }});
  }
  return weights;
}

DecoderNetwork build_decoder_network(
    const DecoderConfig& config,
    const std::function<std::vector<Tensor>(const std::string&)>& parts, uint32_t positions,
    DataType activations, DataType cache) {
  const auto weight = [&](const std::string& name) { return parts(name).at(0); };
  const auto linear = [&](const std::string& name, bool bias) {
    const std::vector<Tensor> matrices = parts(name + ".weight");
    Linear result = {matrices[0], std::nullopt, {matrices.begin() + 1, matrices.end()}};
    if (bias) result.bias = weight(name + ".bias");
    return result;
  };
  const auto norm = [&](const std::string& name, bool joins) {
    const NormKind rms = joins && config.norm_after ? NormKind::kRmsBoth : NormKind::kRms;
    return Norm{weight(name), config.norm_epsilon, config.rms_norm ? rms : NormKind::kLayer};
  };
  if (config.head_size % block_elements(cache) != 0)
    throw ModelError("keys and values",
                     fmt::format("in {} are blocks of {}, the model's heads have {}",
                                 name_of(cache), block_elements(cache), config.head_size),
                     "keep them in f16");
  DecoderNetwork network;
  network.activations = activations;
  network.cache = cache;
  network.vocabulary = config.vocabulary;
  network.max_positions = positions;
  CausalDecoder& decoder = network.decoder;
  decoder.embedding = {.table = weight("embedding"), .scale = config.embedding_scale};
  if (config.ropes.empty()) decoder.embedding.positions = weight("positions");
  decoder.first_norm = norm("first_norm", false);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const std::string name = fmt::format("layers.{}.", i);
    CausalAttention attention = {.heads = config.heads,
                                 .kv_heads = config.kv_heads,
                                 .head_size = config.head_size,
                                 .scale = config.attention_scale,
                                 .window = config.layers[i].window,
                                 .qkv = linear(name + "qkv", config.qkv_bias),
                                 .out = linear(name + "out", config.out_bias)};
    if (!config.ropes.empty()) {
      const RopeConfig& rope = config.ropes[config.layers[i].rope];
      attention.rope =
          CausalAttention::Rope{.angles = weight(fmt::format("rope.{}", config.layers[i].rope)),
                                .rotated = rope.rotated,
                                .interleaved = config.interleaved_pairs};
    }
    if (config.qk_norm) {
      attention.qk_gains = weight(name + "qk_norm");
      attention.qk_epsilon = config.norm_epsilon;
    }
    decoder.layers.push_back(
        {.attention = std::move(attention),
         .after_attention = norm(name + "after_attention", true),
         .feed_forward = {.up = linear(name + "up", config.feed_forward_bias),
                          .down = linear(name + "down", config.feed_forward_bias),
                          .activation = config.activation,
                          .gated = config.gated},
         .after_feed_forward = norm(name + "after_feed_forward", true)});
  }
  decoder.output.weight = weight(config.tied_output ? "embedding" : "output");
  return network;
}

DecoderNetwork planned_decoder_network(const DecoderConfig& config, uint32_t positions,
                                       DataType activations, DataType cache) {
  std::map<std::string, Shape> shapes;
  for (const WeightSpec& spec : decoder_weight_table(config)) shapes[spec.name] = spec.shape;
  for (const ComputedWeight& computed : computed_decoder_weights(config, positions))
    shapes[computed.name] = computed.shape;
  const auto planned = [&](const std::string& name) {
    Tensor tensor = {.shape = shapes.at(name)};
    tensor.view.size = tensor.bytes();
    return std::vector<Tensor>{tensor};
  };
  return build_decoder_network(config, planned, positions, activations, cache);
}

}  // namespace mulciber
