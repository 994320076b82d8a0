#include "models/networks/decoder_network.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "layers/state_space.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

/// Whether a context of this many positions needs LongRoPE's long factors.
bool passes_original_context(const RopeConfig& rope, uint32_t positions) {
  return rope.long_scaling && positions > rope.scaling.original_max_position_embeddings;
}

/// Limit of elements up to which a quantized product has its norm folded in. Each workgroup of such
/// a product reads the row and the gains again, which costs more than a dispatch of the norm when
/// the quantized weight is large. On an H200 a q4_K product of 16,384 x 2,048 takes 34 us with the
/// norm and 26 without, one of 28,672 x 4,096 119 and 59.
constexpr uint64_t kMostFoldedElements = uint64_t{1} << 25;

bool folding_pays(const Linear& product) {
  uint64_t elements = product.weight.shape.elements();
  for (const Tensor& segment : product.more_segments) elements += segment.shape.elements();
  return !is_block_type(product.weight.type) || elements < kMostFoldedElements;
}

/// Makes norms write q8_1 blocks where only an integer product reads their result, and if `folded`
/// moves norms into the products after them.
void join_norms(CausalDecoder& decoder, bool folded) {
  const auto join = [&](Norm& norm, const Linear& next) {
    // Adapters also read the norm's result, and need it as floats.
    norm.for_integers = next.integers && !next.low_rank;
    norm.folds = folded && !next.integers && !next.bias && !next.low_rank && !next.column_order &&
                 next.weight.shape.columns() % 8 == 0 && folding_pays(next);
  };
  Norm* before = decoder.first_norm ? &*decoder.first_norm : nullptr;
  for (CausalLayer& layer : decoder.layers) {
    // With parallel sublayers one norm feeds two products, or the stream changes before the second
    // reads it.
    const bool sequential = layer.after_attention.has_value();
    if (before && sequential && !layer.attention.latent) join(*before, layer.attention.qkv);
    const auto* feed_forward = std::get_if<FeedForward>(&layer.feed_forward);
    if (feed_forward && sequential) join(*layer.after_attention, feed_forward->up);
    before = &layer.after_feed_forward;
  }
}

}  // namespace

bool takes_adapters(const std::string& weight) {
  constexpr std::string_view kProducts[] = {
      "qkv",          "out",    "up",       "down", "query_down", "query",   "key_value_down",
      "key_value_up", "key_up", "value_up", "in",   "step_down",  "step_up", "pairs",
      "router",       "gate"};
  constexpr std::string_view kEnding = ".weight";
  if (weight == "output.weight") return true;
  std::string_view part = weight;
  if (part.ends_with(kEnding)) part.remove_suffix(kEnding.size());
  return std::ranges::count(kProducts, part.substr(part.rfind('.') + 1)) > 0;
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
    // Computed weights are floats, so the words are stored as floats of equal bits.
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
  const auto low_rank_of = [&](const std::string& name) -> std::optional<LowRank> {
    if (!types.adapters) return std::nullopt;
    const auto found = types.adapters->updates.find(name);
    if (found == types.adapters->updates.end()) return std::nullopt;
    const AdapterUpdate& update = found->second;
    return LowRank{weight(lora_down(name)), weight(lora_up(name)), update.first, update.count};
  };
  const auto linear = [&](const std::string& name, bool bias) {
    std::vector<Tensor> matrices = segments(name + ".weight");
    std::optional<Tensor> column_order;
    if (matrices.back().type == DataType::kU32) {
      column_order = matrices.back();
      matrices.pop_back();
    }
    Linear result = {matrices[0], std::nullopt, {matrices.begin() + 1, matrices.end()}};
    result.column_order = column_order;
    if (bias) result.bias = weight(name + ".bias");
    result.integers =
        types.integer_products && !column_order && types.activations == DataType::kF32 &&
        std::ranges::all_of(matrices,
                            [](const Tensor& part) { return multiplies_integers(part.type); });
    result.low_rank = low_rank_of(name + ".weight");
    return result;
  };
  // The stored residual stream is divided by residual_multiplier, so sublayers' results need no
  // factor. Norms are invariant to that, except for their epsilon.
  const float stream_scale = config.residual_multiplier;
  const auto norm = [&](const std::string& name, NormKind kind) {
    return Norm{weight(name), config.norms.epsilon / (stream_scale * stream_scale), kind};
  };
  const NormKind plain = config.norms.kind;
  const NormKind joining = config.norms.place == NormPlace::kBefore  ? plain
                           : config.norms.place == NormPlace::kAfter ? NormKind::kRmsAfter
                                                                     : NormKind::kRmsBoth;
  const DecoderAttention& described = config.attention;
  // The rotated part of a latent key and the rest each begin a block.
  const uint32_t block = block_elements(types.cache);
  const std::vector<uint32_t> in_blocks =
      described.latent ? std::vector<uint32_t>{described.latent->rotated, described.latent->rank}
                       : std::vector<uint32_t>{described.head_size};
  for (const uint32_t size : in_blocks)
    if (size % block != 0)
      throw ModelError("keys and values",
                       fmt::format("in {} are blocks of {}, the model's heads have {}",
                                   name_of(types.cache), block, size),
                       "keep them in f16");
  const auto latent_of = [&](const std::string& name, const DecoderLatent& latent) {
    const auto gains = [&](const char* part) {
      const Tensor all = weight(name + part);
      return all.reshaped({1, all.shape.elements()});
    };
    const uint32_t rest = described.head_size - latent.rotated;
    // A head's rows, from `first` on, of the joint matrix of keys and values; or of a separate
    // matrix, with `rows` rows for each head, to which adapters of the joint matrix apply too.
    const auto matrices = [&](uint32_t first, bool transposed, const char* own, uint32_t rows) {
      const std::string both = name + "key_value_up.weight";
      const uint32_t step = rest + latent.value_size;
      const bool apart = config.files.names.key_value_up == nullptr;
      HeadMatrices result = {weight(apart ? name + own : both), apart ? 0 : first,
                             apart ? rows : step, !apart && transposed};
      if (const auto low_rank = low_rank_of(both))
        result.low_ranks.push_back({*low_rank, first, step, transposed});
      const auto low_rank = apart ? low_rank_of(name + own) : std::nullopt;
      if (low_rank) result.low_ranks.push_back({*low_rank, 0, rows, false});
      return result;
    };
    LatentProjection projection = {
        .query = linear(name + "query", false),
        .down = linear(name + "key_value_down", false),
        .gains = gains("key_value_norm"),
        .epsilon = config.norms.epsilon,
        .key_up = matrices(0, true, "key_up.weight", latent.rank),
        .value_up = matrices(rest, false, "value_up.weight", latent.value_size),
        .heads = described.heads,
        .rotated = latent.rotated,
        .rest = rest,
        .rank = latent.rank,
        .value_size = latent.value_size};
    if (latent.query_rank > 0) {
      projection.query_down = linear(name + "query_down", false);
      projection.query_gains = gains("query_norm");
    }
    return projection;
  };
  const auto attention_of = [&](const std::string& name, const DecoderLayerConfig& layer) {
    CausalAttention attention = {
        .heads = described.heads,
        .kv_heads = described.kv_heads,
        .head_size = described.head_size,
        .scale = described.scale,
        .soft_cap = described.soft_cap,
        .window = layer.window,
        .sinks = described.sinks,
        .clip = described.clip,
        .appends = types.folded_appends,
        .qkv = described.latent ? Linear{} : linear(name + "qkv", described.qkv_bias),
        .out = linear(name + "out", described.out_bias)};
    if (described.latent) {
      // Heads share one key, whose columns are also the value: no attention kernel appends such
      // keys.
      attention.appends = false;
      attention.latent = latent_of(name, *described.latent);
      attention.kv_heads = 1;
      attention.head_size = attention.latent->key_columns();
      attention.value_size = described.latent->rank;
    }
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
    attention.qk_epsilon = config.norms.epsilon;
    attention.centers_groups = config.norms.kind == NormKind::kLayer;
    switch (described.qk_norm) {
      case QueryKeyNorm::kNone: break;
      case QueryKeyNorm::kPerHead: attention.qk_gains = weight(name + "qk_norm"); break;
      case QueryKeyNorm::kOwnGains: attention.group_gains = {weight(name + "qk_norm")}; break;
      case QueryKeyNorm::kAllHeads:
        for (const char* part : {"q_norm", "k_norm"}) {
          const Tensor gains = weight(name + part);
          attention.group_gains.push_back(gains.reshaped({1, gains.shape.elements()}));
        }
        break;
    }
    return attention;
  };
  if (config.state_space && types.activations != DataType::kF32)
    throw ModelError("activations", "in 16 bits do not go with layers that keep a state",
                     "leave them in 32 bits");
  const auto state_space_of = [&](const std::string& name, const DecoderStateSpace& of) {
    StateSpace layer{.sizes = {.channels = of.channels, .states = of.states, .taps = of.taps},
                     .in = linear(name + "in", of.bias),
                     .convolution = weight(name + "convolution"),
                     .step_down = linear(name + "step_down", false),
                     .step_up = linear(name + "step_up", true),
                     .pairs = linear(name + "pairs", false),
                     .scan = weight(name + "scan"),
                     .out = linear(name + "out", of.bias)};
    if (of.norm_epsilon)
      layer.norms =
          SelectionNorms{weight(name + "step_norm"), weight(name + "pairs_norm"), *of.norm_epsilon};
    return layer;
  };
  const auto feed_forward_of =
      [&](const std::string& name,
          const DecoderLayerConfig& layer) -> std::variant<FeedForward, MixtureOfExperts> {
    const auto one = [&](const std::string& part) {
      return FeedForward{.up = linear(part + "up", config.feed_forward.bias),
                         .down = linear(part + "down", config.feed_forward.bias),
                         .activation = config.feed_forward.activation,
                         .gated = config.feed_forward.kind == FeedForwardKind::kGated};
    };
    if (const auto& experts = config.feed_forward.experts; experts && !layer.dense) {
      const bool bias = config.feed_forward.bias;
      const auto bias_of = [&](const char* part) {
        return bias ? std::optional(weight(name + part)) : std::nullopt;
      };
      Tensor rules = weight("experts.rules");
      rules.type = DataType::kU32;
      MixtureOfExperts mixture{.router = linear(name + "router", experts->router_bias),
                               .rules = rules,
                               .up = weight(name + "experts.up"),
                               .down = weight(name + "experts.down"),
                               .up_bias = bias_of("experts.up.bias"),
                               .down_bias = bias_of("experts.down.bias"),
                               .activation = config.feed_forward.activation,
                               .gated = true,
                               .limit = experts->limit,
                               .experts_per_token = experts->per_token,
                               .normalize = experts->normalized,
                               .up_low_rank = low_rank_of(name + "experts.up"),
                               .down_low_rank = low_rank_of(name + "experts.down")};
      if (const auto& routing = experts->routing) {
        mixture.choice = RouteOptions{.experts_per_token = experts->per_token,
                                      .sigmoid = routing->sigmoid,
                                      .groups = routing->groups,
                                      .groups_used = routing->groups_used,
                                      .two_best = routing->two_best,
                                      .normalize = experts->normalized,
                                      .scale = routing->scale};
        if (routing->bias) mixture.choice->bias = weight(name + "router.choice");
      }
      if (experts->shared_hidden > 0) mixture.shared = one(name + "shared.");
      if (experts->shared_gate) mixture.shared_gate = linear(name + "shared.gate", false);
      return mixture;
    }
    return one(name);
  };
  DecoderNetwork network;
  network.activations = types.activations;
  network.cache = types.cache;
  network.vocabulary = config.vocabulary;
  network.context = positions;
  network.sees = config.sees;
  // Their values are read after the weights are loaded.
  if (described.sinks) network.sinks.resize(config.layers.size() * described.heads);
  CausalDecoder& decoder = network.decoder;
  network.stream_scale = stream_scale;
  network.embedding = {.table = weight("embedding"),
                       .scale = config.embedding.multiplier / stream_scale};
  if (config.embedding.learned_positions) network.embedding.positions = weight("positions");
  if (config.norms.place != NormPlace::kAfter) decoder.first_norm = norm("first_norm", plain);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const std::string name = fmt::format("layers.{}.", i);
    const bool last = i + 1 == config.layers.size();
    CausalLayer layer;
    layer.after_feed_forward =
        norm(name + "after_feed_forward",
             last && joining == NormKind::kRmsAfter ? NormKind::kRmsBoth : joining);
    if (config.state_space) {
      layer.mixer = mixer_of(state_space_of(name, *config.state_space));
      decoder.layers.push_back(std::move(layer));
      continue;
    }
    layer.attention = attention_of(name, config.layers[i]);
    layer.feed_forward = feed_forward_of(name, config.layers[i]);
    switch (config.residual) {
      case Residual::kSequential:
        layer.after_attention = norm(name + "after_attention", joining);
        break;
      case Residual::kParallel:
        layer.before_feed_forward = norm(name + "before_feed_forward", plain);
        break;
      case Residual::kParallelSharedNorm: break;
    }
    decoder.layers.push_back(std::move(layer));
  }
  join_norms(decoder, types.folded_norms);
  decoder.output.weight = weight(config.output.tied ? "embedding" : "output.weight");
  if (config.output.bias) decoder.output.bias = weight("output.bias");
  decoder.output.low_rank = low_rank_of("output.weight");
  if (types.adapters) network.adapters = types.adapters->adapters;
  decoder.logit_scale = config.output.multiplier;
  decoder.logit_cap = config.output.soft_cap;
  return network;
}

DecoderNetwork planned_decoder_network(
    const DecoderConfig& config, const std::map<std::string, std::vector<WeightSegment>>& weights,
    uint32_t positions, const NetworkTypes& types) {
  std::map<std::string, std::vector<Tensor>> tensors;
  const auto plan = [&](const std::string& name, const Shape& shape, DataType type) {
    // The segments of a weight share a buffer (WeightSink::begin).
    std::vector<Tensor>& segments = tensors[name];
    Tensor tensor{.shape = shape, .type = type};
    if (!segments.empty()) {
      const BufferView& before = segments.back().view;
      tensor.view.offset = before.offset + aligned_weight_bytes(before.size);
    }
    tensor.view.size = tensor.bytes();
    segments.push_back(tensor);
  };
  for (const auto& [name, segments] : weights) {
    for (const WeightSegment& segment : segments) plan(name, segment.shape, segment.type);
  }
  for (const ComputedWeight& computed : computed_decoder_weights(config, positions))
    plan(computed.name, computed.shape, DataType::kF32);
  if (types.adapters) {
    for (const auto& [weight, update] : types.adapters->updates) {
      plan(lora_down(weight), update.down, update.type);
      plan(lora_up(weight), update.up, update.type);
    }
  }
  return build_decoder_network(
      config, [&](const std::string& name) { return tensors.at(name); }, positions, types);
}

}  // namespace mulciber
