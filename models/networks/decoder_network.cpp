#include "models/networks/decoder_network.h"

#include <cstring>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "models/networks/linear_weights.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

/// What a description may ask for and the layers here do not do yet.
void require_supported(const DecoderConfig& config) {
  const auto refuse = [](bool asked, const char* what) {
    if (asked)
      throw ModelError("the network", fmt::format("has {}, which is not supported", what),
                       "use another model");
  };
  const DecoderNorms& norms = config.norms;
  const bool layer_norm = norms.kind == NormKind::kLayer;
  refuse(norms.place == NormPlace::kAfter, "norms after its sublayers alone");
  refuse(layer_norm && norms.place != NormPlace::kBefore, "layer norms after its sublayers");
  refuse(layer_norm && !norms.bias, "layer norms without a bias");
  refuse(!layer_norm && norms.bias, "root-mean-square norms with a bias");
  refuse(config.residual != Residual::kSequential, "attention and feed-forward side by side");
  refuse(config.residual_multiplier != 1, "a multiplier onto what joins its residual stream");
  const DecoderAttention& attention = config.attention;
  refuse(attention.sinks, "attention sinks");
  refuse(attention.qk_norm == QueryKeyNorm::kOwnGains, "gains of queries and keys for each head");
  refuse(attention.qk_norm == QueryKeyNorm::kAllHeads,
         "queries and keys normalized over all heads");
  for (const DecoderLayerConfig& layer : config.layers)
    refuse(attention.qk_norm != QueryKeyNorm::kNone && !layer.rope,
           "queries and keys that are normalized and not rotated");
  refuse(config.output.multiplier != 1, "a multiplier onto its logits");
  refuse(config.output.soft_cap != 0, "a soft cap on its logits");
  const DecoderFeedForward& feed_forward = config.feed_forward;
  refuse(feed_forward.experts && feed_forward.bias, "experts with biases");
  refuse(feed_forward.experts && layer_norm, "experts between layer norms");
  refuse(feed_forward.experts && feed_forward.kind == FeedForwardKind::kPlain,
         "experts without gates");
}

/// Whether sequences of a network for so many positions may need LongRoPE's long factors.
bool passes_original_context(const RopeConfig& rope, uint32_t positions) {
  return rope.long_scaling && positions > rope.scaling.original_max_position_embeddings;
}

/// Every weight of a configuration, under its name here and its names in files.
class TableWriter {
 public:
  explicit TableWriter(const DecoderConfig& config) : config_(config), names_(config.files.names) {}

  WeightTable write() {
    require_supported(config_);
    const uint64_t D = config_.width;
    table_.push_back({"embedding",
                      WeightRole::kMatrix,
                      {config_.vocabulary, D},
                      {{weight(names_.embedding), {config_.vocabulary, D}}}});
    if (config_.embedding.learned_positions)
      table_.push_back({"positions",
                        WeightRole::kVector,
                        {config_.context, D},
                        {{weight(names_.positions), {config_.context, D}}}});
    const WeightNames output = behind(
        names_.output_prefixes.empty() ? names_.prefixes : names_.output_prefixes, names_.output);
    if (!config_.output.tied)
      table_.push_back({"output.weight",
                        WeightRole::kMatrix,
                        {config_.vocabulary, D},
                        {{with_ending(output, ".weight"), {config_.vocabulary, D}}}});
    if (config_.output.bias)
      table_.push_back({"output.bias",
                        WeightRole::kVector,
                        {config_.vocabulary},
                        {{with_ending(output, ".bias"), {config_.vocabulary}}}});
    norm("first_norm", {in_layer(0, names_.attention_norm)});
    for (uint32_t i = 0; i < config_.layers.size(); ++i) layer(i);
    return std::move(table_);
  }

 private:
  /// A part of the model, or of a layer, without ".weight".
  WeightNames global(const std::string& part) const { return behind(names_.prefixes, part); }
  static WeightNames behind(std::span<const char* const> prefixes, const std::string& part) {
    WeightNames names;
    for (const char* prefix : prefixes) names.push_back(prefix + part);
    return names;
  }
  WeightNames in_layer(uint32_t index, const char* part) const {
    return global(fmt::format("{}{}.{}", names_.layer, index, part));
  }
  WeightNames weight(const char* part) const { return with_ending(global(part), ".weight"); }

  /// parts: one norm, or the one of what joins the stream and then the stream's.
  void norm(const std::string& name, const std::vector<WeightNames>& parts) {
    const uint64_t D = config_.width;
    WeightSpec spec = {name, WeightRole::kVector, {}, {}};
    for (const WeightNames& part : parts) {
      spec.sources.push_back({with_ending(part, ".weight"), {D}, config_.files.gains});
      if (config_.norms.bias) spec.sources.push_back({with_ending(part, ".bias"), {D}});
    }
    spec.shape = spec.sources.size() == 1 ? Shape{D} : Shape{spec.sources.size(), D};
    table_.push_back(std::move(spec));
  }

  void linear(const std::string& name, const std::vector<LinearPart>& parts, uint64_t columns,
              bool bias, bool in_turns = false) {
    add_linear(table_, name, parts, columns, bias, in_turns, config_.files.matrices);
  }

  void layer(uint32_t i) {
    const DecoderAttention& attention = config_.attention;
    const uint64_t D = config_.width, H = attention.head_size;
    const uint64_t Q = attention.query_columns(), K = attention.key_columns();
    const std::string name = fmt::format("layers.{}.", i);
    const auto file = [&](const char* part) { return in_layer(i, part); };
    if (names_.qkv) {
      linear(name + "qkv", {{file(names_.qkv), Q + 2 * K}}, D, attention.qkv_bias);
    } else {
      linear(name + "qkv", {{file(names_.q), Q}, {file(names_.k), K}, {file(names_.v), K}}, D,
             attention.qkv_bias);
    }
    if (attention.qk_norm == QueryKeyNorm::kPerHead)
      table_.push_back({name + "qk_norm",
                        WeightRole::kVector,
                        {2, H},
                        {{with_ending(file(names_.q_norm), ".weight"), {H}, config_.files.gains},
                         {with_ending(file(names_.k_norm), ".weight"), {H}, config_.files.gains}}});
    linear(name + "out", {{file(names_.attention_out), D}}, Q, attention.out_bias);
    feed_forward(i, name);
    norms(i, name);
  }

  void feed_forward(uint32_t i, const std::string& name) {
    const DecoderFeedForward& feed_forward = config_.feed_forward;
    const uint64_t D = config_.width, F = feed_forward.hidden;
    const auto file = [&](const char* part) { return in_layer(i, part); };
    if (feed_forward.experts) return experts(i, name, *feed_forward.experts);
    if (feed_forward.kind == FeedForwardKind::kPlain) {
      linear(name + "up", {{file(names_.up), F}}, D, feed_forward.bias);
    } else if (names_.gate_up) {
      linear(name + "up",
             {{file(names_.gate_up), F, 2 * F, 0}, {file(names_.gate_up), F, 2 * F, F}}, D,
             feed_forward.bias, true);
    } else {
      linear(name + "up", {{file(names_.gate), F}, {file(names_.up), F}}, D, feed_forward.bias,
             true);
    }
    linear(name + "down", {{file(names_.down), D}}, F, feed_forward.bias);
  }

  void experts(uint32_t i, const std::string& name, const DecoderExperts& experts) {
    const uint64_t D = config_.width, F = config_.feed_forward.hidden, E = experts.count;
    linear(name + "router", {{in_layer(i, names_.router), E}}, D, false);
    WeightSpec up = {name + "experts.up", WeightRole::kExperts, {E, 2 * F, D}, {}, 2};
    WeightSpec down = {name + "experts.down", WeightRole::kExperts, {E, D, F}, {}};
    const auto add = [&](WeightSpec& spec, const char* part, uint64_t e, uint64_t rows,
                         uint64_t columns) {
      if (std::string_view(part).find("{}") == std::string_view::npos) {
        if (e == 0)
          spec.sources.push_back({with_ending(in_layer(i, part), ".weight"), {E, rows, columns}});
      } else {
        std::string numbered = part;
        numbered.replace(numbered.find("{}"), 2, std::to_string(e));
        spec.sources.push_back(
            {with_ending(in_layer(i, numbered.c_str()), ".weight"), {rows, columns}});
      }
    };
    for (uint64_t e = 0; e < E; ++e) {
      add(up, names_.expert_gate, e, F, D);
      add(up, names_.expert_up, e, F, D);
      add(down, names_.expert_down, e, D, F);
    }
    table_.push_back(std::move(up));
    table_.push_back(std::move(down));
  }

  /// Each norm belongs to the sublayer before it, whose result it joins to the stream.
  void norms(uint32_t i, const std::string& name) {
    const auto file = [&](const char* part) { return in_layer(i, part); };
    std::vector<WeightNames> after_attention = {file(names_.feed_forward_norm)};
    std::vector<WeightNames> after_feed_forward = {i + 1 < config_.layers.size()
                                                       ? in_layer(i + 1, names_.attention_norm)
                                                       : global(names_.final_norm)};
    if (config_.norms.place == NormPlace::kBoth) {
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

/// Has norms write blocks where a product of integers is all that takes their result, and with
/// `folded` products do the norm before them.
void join_norms(CausalDecoder& decoder, bool folded) {
  const auto join = [&](Norm& norm, const Linear& next) {
    norm.for_integers = next.integers;
    norm.folds = folded && !next.integers && !next.bias && next.weight.shape.columns() % 8 == 0;
  };
  Norm* before = &decoder.first_norm;
  for (CausalLayer& layer : decoder.layers) {
    join(*before, layer.attention.qkv);
    if (const auto* feed_forward = std::get_if<FeedForward>(&layer.feed_forward))
      join(layer.after_attention, feed_forward->up);
    before = &layer.after_feed_forward;
  }
}

}  // namespace

WeightTable decoder_weight_table(const DecoderConfig& config) {
  return TableWriter(config).write();
}

std::vector<ComputedWeight> computed_decoder_weights(const DecoderConfig& config,
                                                     uint32_t positions) {
  std::vector<ComputedWeight> weights;
  const auto add = [&](const std::string& name, const RopeConfig& rope,
                       const RopeScaling& scaling) {
    weights.push_back({name, {positions, rope.rotated}, [positions, rope, scaling] {
                         return rope_angles(positions, rope.rotated, rope.base, scaling);
                       }});
  };
  for (size_t i = 0; i < config.ropes.size(); ++i) {
    const RopeConfig& rope = config.ropes[i];
    add(fmt::format("rope.{}", i), rope, rope.scaling);
    if (passes_original_context(rope, positions))
      add(fmt::format("rope.{}.long", i), rope, *rope.long_scaling);
  }
  if (config.feed_forward.experts) {
    // Words, which travel as the floats of the same bits.
    const std::vector<uint32_t> words = MixtureOfExperts::rules_words();
    weights.push_back({"experts.rules", {words.size()}, [words] {
                         std::vector<float> bits(words.size());
                         std::memcpy(bits.data(), words.data(), words.size() * sizeof(float));
                         return bits;
                       }});
  }
  return weights;
}

DecoderNetwork build_decoder_network(
    const DecoderConfig& config,
    const std::function<std::vector<Tensor>(const std::string&)>& segments, uint32_t positions,
    const NetworkTypes& types) {
  const auto weight = [&](const std::string& name) { return segments(name).at(0); };
  const auto linear = [&](const std::string& name, bool bias) {
    const std::vector<Tensor> matrices = segments(name + ".weight");
    Linear result = {matrices[0], std::nullopt, {matrices.begin() + 1, matrices.end()}};
    if (bias) result.bias = weight(name + ".bias");
    result.integers =
        types.integer_products && types.activations == DataType::kF32 &&
        std::ranges::all_of(matrices, [](const Tensor& part) { return is_block_type(part.type); });
    return result;
  };
  const auto norm = [&](const std::string& name, bool joins) {
    const bool both = joins && config.norms.place == NormPlace::kBoth;
    return Norm{weight(name), config.norms.epsilon, both ? NormKind::kRmsBoth : config.norms.kind};
  };
  const DecoderAttention& described = config.attention;
  if (described.head_size % block_elements(types.cache) != 0)
    throw ModelError(
        "keys and values",
        fmt::format("in {} are blocks of {}, the model's heads have {}", name_of(types.cache),
                    block_elements(types.cache), described.head_size),
        "keep them in f16");
  const auto attention_of = [&](const std::string& name, const DecoderLayerConfig& layer) {
    CausalAttention attention = {.heads = described.heads,
                                 .kv_heads = described.kv_heads,
                                 .head_size = described.head_size,
                                 .scale = described.scale,
                                 .soft_cap = described.soft_cap,
                                 .window = layer.window,
                                 .qkv = linear(name + "qkv", described.qkv_bias),
                                 .out = linear(name + "out", described.out_bias)};
    if (layer.rope) {
      const RopeConfig& rope = config.ropes[*layer.rope];
      const std::string angles = fmt::format("rope.{}", *layer.rope);
      attention.rope = CausalAttention::Rope{.angles = weight(angles),
                                             .rotated = rope.rotated,
                                             .interleaved = rope.pairs == RotaryPairs::kNeighbours};
      if (passes_original_context(rope, positions)) {
        attention.rope->long_angles = weight(angles + ".long");
        attention.rope->original_context =
            static_cast<uint32_t>(rope.scaling.original_max_position_embeddings);
      }
    }
    if (described.qk_norm != QueryKeyNorm::kNone) {
      attention.qk_gains = weight(name + "qk_norm");
      attention.qk_epsilon = config.norms.epsilon;
    }
    return attention;
  };
  const auto feed_forward_of =
      [&](const std::string& name) -> std::variant<FeedForward, MixtureOfExperts> {
    if (const auto& experts = config.feed_forward.experts) {
      Tensor rules = weight("experts.rules");
      rules.type = DataType::kU32;
      return MixtureOfExperts{.router = linear(name + "router", false),
                              .rules = rules,
                              .up = weight(name + "experts.up"),
                              .down = weight(name + "experts.down"),
                              .up_bias = {},
                              .down_bias = {},
                              .activation = config.feed_forward.activation,
                              .gated = true,
                              .experts_per_token = experts->per_token,
                              .normalize = experts->normalized};
    }
    return FeedForward{.up = linear(name + "up", config.feed_forward.bias),
                       .down = linear(name + "down", config.feed_forward.bias),
                       .activation = config.feed_forward.activation,
                       .gated = config.feed_forward.kind == FeedForwardKind::kGated};
  };
  DecoderNetwork network;
  network.activations = types.activations;
  network.cache = types.cache;
  network.vocabulary = config.vocabulary;
  network.context = positions;
  CausalDecoder& decoder = network.decoder;
  network.embedding = {.table = weight("embedding"), .scale = config.embedding.multiplier};
  if (config.embedding.learned_positions) network.embedding.positions = weight("positions");
  decoder.first_norm = norm("first_norm", false);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const std::string name = fmt::format("layers.{}.", i);
    decoder.layers.push_back({.attention = attention_of(name, config.layers[i]),
                              .after_attention = norm(name + "after_attention", true),
                              .feed_forward = feed_forward_of(name),
                              .after_feed_forward = norm(name + "after_feed_forward", true)});
  }
  join_norms(decoder, types.folded_norms);
  decoder.output.weight = weight(config.output.tied ? "embedding" : "output.weight");
  if (config.output.bias) decoder.output.bias = weight("output.bias");
  return network;
}

DecoderNetwork planned_decoder_network(const DecoderConfig& config, uint32_t positions,
                                       const NetworkTypes& types) {
  std::map<std::string, Tensor> tensors;
  for (const WeightSpec& spec : decoder_weight_table(config)) {
    // With products of integers matrices count as blocks, as far as they can be: of activations
    // such a network needs the most.
    const bool blocks = types.integer_products && spec.role == WeightRole::kMatrix &&
                        spec.shape.columns() % block_elements(DataType::kQ8_0) == 0;
    tensors[spec.name] = {.shape = spec.shape, .type = blocks ? DataType::kQ8_0 : DataType::kF32};
  }
  for (const ComputedWeight& computed : computed_decoder_weights(config, positions))
    tensors[computed.name] = {.shape = computed.shape};
  const auto planned = [&](const std::string& name) {
    Tensor tensor = tensors.at(name);
    tensor.view.size = tensor.bytes();
    return std::vector<Tensor>{tensor};
  };
  return build_decoder_network(config, planned, positions, types);
}

}  // namespace mulciber
