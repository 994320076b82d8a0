#include <string_view>

#include <fmt/format.h>

#include "models/core/linear_weights.h"
#include "models/networks/decoder_network.h"
#include "models/networks/latent_weights.h"
#include "models/networks/state_space_weights.h"
#include "mulciber/error.h"
#include "ops/state_space.h"
#include "shaders/attention.h"

namespace mulciber {
namespace {

/// Throws ModelError for features of a configuration that the layers do not support.
void require_supported(const DecoderConfig& config) {
  const auto refuse = [](bool asked, const char* what) {
    if (asked)
      throw ModelError("the network", fmt::format("has {}, which is not supported", what),
                       "use another model");
  };
  const DecoderNorms& norms = config.norms;
  const bool layer_norm = norms.kind == NormKind::kLayer;
  const bool parallel = config.residual != Residual::kSequential;
  refuse(layer_norm && norms.place != NormPlace::kBefore, "layer norms after its sublayers");
  refuse(parallel && norms.place != NormPlace::kBefore,
         "sublayers side by side with norms after them");
  refuse(!layer_norm && norms.bias, "root-mean-square norms with a bias");
  refuse(!layer_norm && !norms.gains, "root-mean-square norms without weights");
  refuse(layer_norm && config.residual_multiplier != 1,
         "layer norms, and a multiplier onto what joins its residual stream");
  refuse(config.embedding.learned_positions && config.residual_multiplier != 1,
         "learned positions, and a multiplier onto what joins its residual stream");
  const DecoderAttention& attention = config.attention;
  const bool qk_norm = attention.qk_norm != QueryKeyNorm::kNone;
  for (const DecoderLayerConfig& layer : config.layers)
    refuse(attention.qk_norm == QueryKeyNorm::kPerHead && !layer.rope,
           "queries and keys that are normalized and not rotated");
  if (!attention.latent && attention.head_size > MAX_HEAD_SIZE)
    throw ModelError("the network",
                     fmt::format("has heads of {} columns, and attention takes up to {}",
                                 attention.head_size, MAX_HEAD_SIZE),
                     "use another model");
  refuse(attention.latent && (attention.qkv_bias || qk_norm || attention.clip > 0),
         "latent attention with biases, norms of heads or clipping");
  refuse(attention.latent && attention.kv_heads != attention.heads,
         "latent attention whose heads share keys");
  const DecoderFeedForward& feed_forward = config.feed_forward;
  refuse(feed_forward.experts && feed_forward.bias && feed_forward.experts->shared_hidden > 0,
         "shared experts with biases");
  refuse(feed_forward.experts && layer_norm, "experts between layer norms");
  refuse(feed_forward.experts && feed_forward.kind == FeedForwardKind::kPlain,
         "experts without gates");
  if (const auto& state_space = config.state_space)
    refuse(state_space->states > kMostScanStates || state_space->taps > kMostTaps,
           "state-space layers of more states or taps than a lane holds");
}

/// Writes the weight table of a configuration: internal names, and names in files.
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
    if (config_.norms.place != NormPlace::kAfter)
      norm("first_norm", {in_layer(0, names_.attention_norm)});
    for (uint32_t i = 0; i < config_.layers.size(); ++i) layer(i);
    return std::move(table_);
  }

 private:
  /// Names in files for a part of the model or of a layer, without ".weight".
  WeightNames global(const std::string& part) const { return behind(names_.prefixes, part); }
  static WeightNames behind(std::span<const char* const> prefixes, const std::string& part) {
    WeightNames names;
    for (const char* prefix : prefixes) names.push_back(prefix + part);
    return names;
  }
  WeightNames in_layer(uint32_t index, const char* part) const {
    return part ? global(fmt::format("{}{}.{}", names_.layer, index, part)) : WeightNames();
  }
  WeightNames weight(const char* part) const { return with_ending(global(part), ".weight"); }

  /// parts: one norm, or the norm of the sublayer's result and then the norm of the stream; a part
  /// without names is absent.
  void norm(const std::string& name, const std::vector<WeightNames>& parts) {
    const uint64_t D = config_.width;
    const WeightSource zeros = {{}, {D}, SourceForm::kZeros};
    WeightSpec spec = {name, WeightRole::kVector, {}, {}};
    const WeightSource ones = {{}, {D}, SourceForm::kOnes};
    for (const WeightNames& part : parts) {
      spec.sources.push_back(
          part.empty() ? zeros
          : !config_.norms.gains
              ? ones
              : WeightSource{with_ending(part, ".weight"), {D}, config_.files.gains});
      if (config_.norms.kind == NormKind::kLayer)
        spec.sources.push_back(config_.norms.bias ? WeightSource{with_ending(part, ".bias"), {D}}
                                                  : zeros);
    }
    spec.shape = spec.sources.size() == 1 ? Shape{D} : Shape{spec.sources.size(), D};
    table_.push_back(std::move(spec));
  }

  void linear(const std::string& name, const std::vector<LinearPart>& parts, uint64_t columns,
              bool bias, bool interleaved = false) {
    add_linear(table_, name, parts, columns, bias, interleaved, config_.files.matrices, true);
  }

  void layer(uint32_t i) {
    const DecoderAttention& attention = config_.attention;
    const uint64_t D = config_.width, H = attention.head_size;
    const uint64_t Q = attention.query_columns(), K = attention.key_columns();
    const std::string name = fmt::format("layers.{}.", i);
    const auto file = [&](const char* part) { return in_layer(i, part); };
    if (config_.state_space) {
      add_state_space(table_, config_, name, file);
      return norms(i, name);
    }
    if (attention.latent) {
      latent(i, name, *attention.latent);
    } else {
      linear(name + "qkv", qkv_parts(i), D, attention.qkv_bias);
    }
    const auto gains = [&](const char* part, Shape shape) {
      return WeightSource{with_ending(file(part), ".weight"), shape, config_.files.gains};
    };
    const auto qk_norm = [&](const char* ending, Shape shape, std::vector<WeightSource> sources) {
      table_.push_back({name + ending, WeightRole::kVector, shape, std::move(sources)});
    };
    switch (attention.qk_norm) {
      case QueryKeyNorm::kNone: break;
      case QueryKeyNorm::kPerHead:
        qk_norm("qk_norm", {2, H}, {gains(names_.q_norm, {H}), gains(names_.k_norm, {H})});
        break;
      case QueryKeyNorm::kOwnGains:
        qk_norm("qk_norm", {attention.heads + uint64_t{attention.kv_heads}, H},
                {gains(names_.q_norm, {attention.heads, H}),
                 gains(names_.k_norm, {attention.kv_heads, H})});
        break;
      case QueryKeyNorm::kAllHeads:
        qk_norm("q_norm", {Q}, {gains(names_.q_norm, {Q})});
        qk_norm("k_norm", {K}, {gains(names_.k_norm, {K})});
        break;
    }
    linear(name + "out", {{file(names_.attention_out), D}}, attention.value_columns(),
           attention.out_bias);
    if (attention.sinks) {
      const uint64_t heads = attention.heads;
      table_.push_back({name + "sinks",
                        WeightRole::kVector,
                        {heads},
                        {{any_ending(file(names_.sinks), ".weight"), {heads}}}});
    }
    feed_forward(i, name);
    norms(i, name);
  }

  void latent(uint32_t i, const std::string& name, const DecoderLatent& latent) {
    const uint64_t D = config_.width, H = config_.attention.head_size,
                   heads = config_.attention.heads, rest = H - latent.rotated;
    const auto gains = [&](const std::string& weight, const char* part, uint64_t size) {
      table_.push_back({weight,
                        WeightRole::kVector,
                        {size},
                        {{with_ending(in_layer(i, part), ".weight"), {size}}}});
    };
    // The rotated elements come first in each head, where kernels rotate them.
    const WeightNames queries = in_layer(i, latent.query_rank > 0 ? names_.query_up : names_.q);
    std::vector<LinearPart> parts;
    for (uint64_t head = 0; head < heads; ++head) {
      parts.push_back({queries, latent.rotated, heads * H, head * H + rest});
      parts.push_back({queries, rest, heads * H, head * H});
    }
    if (latent.query_rank > 0) {
      linear(name + "query_down", {{in_layer(i, names_.query_down), latent.query_rank}}, D, false);
      gains(name + "query_norm", names_.query_norm, latent.query_rank);
    }
    linear(name + "query", parts, latent.query_rank > 0 ? latent.query_rank : D, false);
    const uint64_t both = latent.rank + uint64_t{latent.rotated};
    const WeightNames down = in_layer(i, names_.key_value_down);
    linear(name + "key_value_down",
           {{down, latent.rotated, both, latent.rank}, {down, latent.rank, both, 0}}, D, false);
    gains(name + "key_value_norm", names_.key_value_norm, latent.rank);
    add_key_value_up(table_, config_, name, [&](const char* part) { return in_layer(i, part); });
  }

  /// Parts of the matrix with all query heads, then key heads, then value heads, from the file's
  /// order.
  std::vector<LinearPart> qkv_parts(uint32_t i) const {
    const DecoderAttention& attention = config_.attention;
    const uint64_t H = attention.head_size, heads = attention.heads, groups = attention.kv_heads;
    const uint64_t Q = attention.query_columns(), K = attention.key_columns();
    if (!names_.qkv)
      return {{in_layer(i, names_.q), Q}, {in_layer(i, names_.k), K}, {in_layer(i, names_.v), K}};
    const WeightNames file = in_layer(i, names_.qkv);
    const uint64_t rows = Q + 2 * K;
    if (!config_.files.qkv_grouped) return {{file, rows}};
    std::vector<LinearPart> parts;
    const uint64_t queries = heads / groups * H, group = queries + 2 * H;
    for (uint64_t g = 0; g < groups; ++g) parts.push_back({file, queries, rows, g * group});
    for (uint64_t g = 0; g < groups; ++g) parts.push_back({file, H, rows, g * group + queries});
    for (uint64_t g = 0; g < groups; ++g) parts.push_back({file, H, rows, g * group + queries + H});
    return parts;
  }

  void feed_forward(uint32_t i, const std::string& name) {
    const DecoderFeedForward& feed_forward = config_.feed_forward;
    const uint64_t D = config_.width, F = feed_forward.hidden;
    const auto file = [&](const char* part) { return in_layer(i, part); };
    if (config_.layers[i].dense) {
      gated(i, name, {names_.gate, names_.up, names_.down}, feed_forward.dense_hidden);
      return;
    }
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

  struct GatedNames {
    const char *gate, *up, *down;
  };
  void gated(uint32_t i, const std::string& name, const GatedNames& names, uint64_t hidden) {
    linear(name + "up", {{in_layer(i, names.gate), hidden}, {in_layer(i, names.up), hidden}},
           config_.width, false, true);
    linear(name + "down", {{in_layer(i, names.down), config_.width}}, hidden, false);
  }

  void experts(uint32_t i, const std::string& name, const DecoderExperts& experts) {
    const uint64_t D = config_.width, F = config_.feed_forward.hidden, E = experts.count;
    linear(name + "router", {{in_layer(i, names_.router), E}}, D, experts.router_bias);
    if (experts.routing && experts.routing->bias)
      table_.push_back({name + "router.choice",
                        WeightRole::kVector,
                        {E},
                        {{in_layer(i, names_.router_choice), {E}}}});
    WeightSpec up = {name + "experts.up", WeightRole::kExperts, {E, 2 * F, D}, {}, 2};
    WeightSpec down = {name + "experts.down", WeightRole::kExperts, {E, D, F}, {}};
    const auto add = [&](WeightSpec& spec, const char* part, uint64_t e, uint64_t rows,
                         uint64_t columns, uint64_t rows_in_file = 0, uint64_t first_row = 0) {
      if (std::string_view(part).find("{}") == std::string_view::npos) {
        if (e == 0)
          spec.sources.push_back({any_ending(in_layer(i, part), ".weight"),
                                  {E, rows, columns},
                                  config_.files.experts,
                                  rows_in_file,
                                  first_row});
      } else {
        std::string numbered = part;
        numbered.replace(numbered.find("{}"), 2, std::to_string(e));
        spec.sources.push_back(
            {with_ending(in_layer(i, numbered.c_str()), ".weight"), {rows, columns}});
      }
    };
    const bool one = names_.expert_gate_up != nullptr;
    const bool interleaved = one && !config_.files.gates_above;
    if (interleaved) up.interleaved = 1;  // the file's rows are already interleaved
    for (uint64_t e = 0; e < E; ++e) {
      if (one && !interleaved) {
        for (const uint64_t first : {uint64_t{0}, F})
          add(up, names_.expert_gate_up, e, F, D, 2 * F, first);
      } else if (one) {
        add(up, names_.expert_gate_up, e, 2 * F, D);
      } else {
        add(up, names_.expert_gate, e, F, D);
        add(up, names_.expert_up, e, F, D);
      }
      add(down, names_.expert_down, e, D, F);
    }
    table_.push_back(std::move(up));
    table_.push_back(std::move(down));
    if (config_.feed_forward.bias) {
      const auto bias = [&](const char* part, uint64_t rows) {
        WeightNames names = with_ending(in_layer(i, part), ".bias");
        for (const std::string& old : with_ending(in_layer(i, part), "_bias")) names.push_back(old);
        return WeightSource{names, {E, rows}};
      };
      WeightSpec of_up = {name + "experts.up.bias", WeightRole::kVector, {E * 2 * F}, {}};
      if (one) {
        of_up.sources = {bias(names_.expert_gate_up, 2 * F)};
      } else {
        of_up.sources = {bias(names_.expert_gate, F), bias(names_.expert_up, F)};
        of_up.interleaved = 2;
        of_up.interleaves_elements = true;
      }
      table_.push_back(std::move(of_up));
      table_.push_back({name + "experts.down.bias",
                        WeightRole::kVector,
                        {E * D},
                        {bias(names_.expert_down, D)}});
    }
    if (experts.shared_hidden > 0)
      gated(i, name + "shared.", {names_.shared_gate, names_.shared_up, names_.shared_down},
            experts.shared_hidden);
    if (experts.shared_gate)
      linear(name + "shared.gate", {{in_layer(i, names_.shared_router), 1}}, D, false);
  }

  /// Adds norms. A norm belongs to the sublayer before it, whose result it adds to the stream.
  void norms(uint32_t i, const std::string& name) {
    const auto file = [&](const char* part) { return in_layer(i, part); };
    const bool last = i + 1 == config_.layers.size();
    const NormPlace place = config_.norms.place;
    const bool reads_stream = place == NormPlace::kAfter;
    std::vector<WeightNames> after_attention = {reads_stream ? WeightNames()
                                                             : file(names_.feed_forward_norm)};
    std::vector<WeightNames> after_feed_forward = {
        last ? global(names_.final_norm)
             : (reads_stream ? WeightNames() : in_layer(i + 1, names_.attention_norm))};
    if (place != NormPlace::kBefore) {
      after_attention.insert(after_attention.begin(), file(names_.after_attention_norm));
      after_feed_forward.insert(after_feed_forward.begin(), file(names_.after_feed_forward_norm));
    }
    if (config_.state_space) return norm(name + "after_feed_forward", after_feed_forward);
    switch (config_.residual) {
      case Residual::kSequential: norm(name + "after_attention", after_attention); break;
      case Residual::kParallel:
        norm(name + "before_feed_forward", {file(names_.feed_forward_norm)});
        break;
      case Residual::kParallelSharedNorm: break;
    }
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

}  // namespace mulciber
