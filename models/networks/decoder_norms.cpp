#include "models/networks/decoder_norms.h"

namespace mulciber {
namespace {

/// parts: one norm, or the norm of the sublayer's result and then the norm of the stream; a part
/// without names is absent.
Tensor norm_weight(const DecoderBuild& build, const std::string& name,
                   const std::vector<WeightNames>& parts) {
  const DecoderNorms& norms = build.config.norms;
  const uint64_t D = build.config.width;
  const WeightSource zeros = {{}, {D}, SourceForm::kZeros}, ones = {{}, {D}, SourceForm::kOnes};
  WeightSpec spec = {name, WeightRole::kVector, {}, {}};
  for (const WeightNames& part : parts) {
    spec.sources.push_back(
        part.empty()   ? zeros
        : !norms.gains ? ones
                       : WeightSource{with_ending(part, ".weight"), {D}, build.config.files.gains});
    if (norms.kind == NormKind::kLayer)
      spec.sources.push_back(norms.bias ? WeightSource{with_ending(part, ".bias"), {D}} : zeros);
  }
  spec.shape = spec.sources.size() == 1 ? Shape{D} : Shape{spec.sources.size(), D};
  return build.weights.tensor(std::move(spec));
}

Norm decoder_norm(const DecoderBuild& build, const std::string& name,
                  const std::vector<WeightNames>& parts, NormKind kind) {
  // Norms are invariant to the scale of the stream, except for their epsilon.
  const float scale = build.stream_scale();
  return {norm_weight(build, name, parts), build.config.norms.epsilon / (scale * scale), kind};
}

/// The kind of a norm that adds a sublayer's result to the stream.
NormKind joining_kind(const DecoderNorms& norms) {
  if (norms.place == NormPlace::kBefore) return norms.kind;
  return norms.place == NormPlace::kAfter ? NormKind::kRmsAfter : NormKind::kRmsBoth;
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

}  // namespace

Norm decoder_first_norm(const DecoderBuild& build) {
  return decoder_norm(build, "first_norm", {build.in_layer(0, build.names().attention_norm)},
                      build.config.norms.kind);
}

void add_norms(const DecoderBuild& build, uint32_t index, CausalLayer& layer) {
  const DecoderConfig& config = build.config;
  const DecoderNames& names = build.names();
  const std::string name = layer_prefix(index);
  const bool last = index + 1 == config.layers.size();
  const bool reads_stream = config.norms.place == NormPlace::kAfter;
  const NormKind joining = joining_kind(config.norms);
  // result: the norm of the sublayer's result; next: the norm before the next sublayer.
  const auto norms_between = [&](const char* result, const WeightNames& next) {
    std::vector<WeightNames> parts;
    if (config.norms.place != NormPlace::kBefore) parts.push_back(build.in_layer(index, result));
    parts.push_back(next);
    return parts;
  };
  const auto before_sublayer = [&](uint32_t of_layer, const char* part) {
    return reads_stream ? WeightNames() : build.in_layer(of_layer, part);
  };
  if (!config.state_space && config.residual == Residual::kSequential)
    layer.after_attention = decoder_norm(
        build, name + "after_attention",
        norms_between(names.after_attention_norm, before_sublayer(index, names.feed_forward_norm)),
        joining);
  if (!config.state_space && config.residual == Residual::kParallel)
    layer.before_feed_forward =
        decoder_norm(build, name + "before_feed_forward",
                     {build.in_layer(index, names.feed_forward_norm)}, config.norms.kind);
  layer.after_feed_forward =
      decoder_norm(build, name + "after_feed_forward",
                   norms_between(names.after_feed_forward_norm,
                                 last ? build.global(names.final_norm)
                                      : before_sublayer(index + 1, names.attention_norm)),
                   last && joining == NormKind::kRmsAfter ? NormKind::kRmsBoth : joining);
}

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

}  // namespace mulciber
