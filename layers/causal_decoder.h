// Blocks of decoder-only networks: Transformers over a cache of keys and values, GPT-2 and what
// came after it, and state-space layers over states.
#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "layers/feed_forward.h"
#include "layers/latent_projection.h"
#include "layers/linear.h"
#include "layers/mixture_of_experts.h"
#include "layers/norm.h"
#include "layers/state_space.h"
#include "layers/trace.h"
#include "ops/rope.h"

namespace mulciber {

/// Where a pass stands: the state that outlives programs.
struct CausalState {
  Tensor control;                    // u32
  ControlArray<uint32_t> positions;  // (rows): tokens in the cache before this pass
  std::span<const Tensor> caches;    // per layer: CausalLayer::cache() with memory, or in pages
  /// (rows): how many of a row's tokens in this pass count, for layers that keep a state.
  ControlArray<uint32_t> counts;
  /// (layers, heads), onto each head's output; where the layers have sinks (layers, 2, heads):
  /// these and the sinks' logits (AttentionControl::head_mask).
  std::optional<ControlArray<float>> head_masks;
  /// (rows, heads): AttentionControl::split_counters.
  std::optional<ControlArray<uint32_t>> split_counters;
  /// (rows, pages of each): AttentionControl::pages.
  std::optional<ControlArray<uint32_t>> pages;
  std::optional<AdapterScales> adapters;  // none: products are those of the weights alone
  /// Rows of one sequence at positions that follow each other: what they append in this pass, those
  /// behind them read.
  bool shares_rows = false;
  Trace* trace = nullptr;

  const AdapterScales* adapter_scales() const { return adapters ? &*adapters : nullptr; }
};

/// Attention of tokens to themselves and to what the cache holds of the tokens before.
struct CausalAttention {
  uint32_t heads = 1, kv_heads = 1;  // heads / kv_heads query heads share keys and values
  uint32_t head_size = 0;
  uint32_t value_size = 0;  // of a head of values; 0: head_size
  float scale = 1;          // onto q k^T
  float soft_cap = 0;       // AttentionOptions::soft_cap
  uint32_t window = 0;      // a token sees that many, itself included; 0: all before it
  bool sinks = false;       // AttentionOptions::sinks
  float clip = 0;  // queries, keys and values are no further from 0 than that; 0: as they are
  struct Rope {
    Tensor angles;  // as layers/rope.h makes them
    /// Instead, where the cache has room for more than `original_context` tokens (LongRoPE). All
    /// keys of a sequence are rotated alike, however long it has become.
    std::optional<Tensor> long_angles;
    uint32_t original_context = 0;
    uint32_t rotated = 0;
    bool interleaved = false;  // pairs are neighbours
  };
  std::optional<Rope> rope;        // none: positions are in the embedding
  std::optional<Tensor> qk_gains;  // (2, head_size): queries and keys are normalized head by head
  /// (groups, columns), one after another from the first query on: groups of columns are normalized
  /// before rotation, each with gains of its own.
  std::vector<Tensor> group_gains;
  bool centers_groups = false;  // they go through layer norm, without a bias
  float qk_epsilon = 0;
  bool appends = false;  // of one token in one dispatch with rotation and append, where a row does
  Linear qkv;            // ((heads + 2 kv_heads) * head_size, D)
  Linear out;            // (D, heads * head_size)
  /// In place of qkv. Heads attend over the narrow vectors themselves: head_size is that of such a
  /// key, value_size the rank, and there is one head of keys.
  std::optional<LatentProjection> latent = {};

  uint32_t values() const { return value_size > 0 ? value_size : head_size; }
  uint32_t query_columns() const { return heads * head_size; }
  uint32_t cache_columns() const {
    return latent ? latent->key_columns() : kv_heads * (head_size + values());
  }

  /// x, result: (rows, length, D); with `add_to` the result is added there. Throws ShapeError
  /// naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Operand& x, const CausalState& state,
                    uint32_t layer, const std::optional<Tensor>& add_to) const;

 private:
  /// How queries and keys are rotated; none: not at all.
  std::optional<RopeOptions> rotation(const CausalState& state, const Tensor& cache) const;
};

/// Two sublayers, or one that keeps a state. Each takes the normalized stream, and a norm joins its
/// result to the stream.
struct CausalLayer {
  CausalAttention attention;
  /// None: side by side, feed-forward reads the stream that attention reads. Source: Wang and
  /// Komatsuzaki 2021 (GPT-J).
  std::optional<Norm> after_attention;
  /// Of what feed-forward reads then; none: what attention reads. Source: Black et al. 2022,
  /// arXiv:2204.06745.
  std::optional<Norm> before_feed_forward;
  std::variant<FeedForward, MixtureOfExperts> feed_forward;
  Norm after_feed_forward;                     // for the next layer's attention, or the output
  std::optional<StateSpace> state_space = {};  // in place of attention and feed-forward

  /// What outlives a pass, shape and type alone: keys and values of `context` tokens, in `type`; or
  /// the state, (rows, 1, columns) f32.
  Tensor cache(uint64_t rows, uint64_t context, DataType type) const;
  /// x: the stream normalized; result: the same after this layer. Changes `stream` in place.
  Operand operator()(ProgramBuilder& builder, const Tensor& stream, const Operand& x,
                     const CausalState& state, uint32_t layer) const;
};

struct CausalDecoder {
  std::optional<Norm> first_norm;  // of the embedding, for layer 0
  std::vector<CausalLayer> layers;
  Linear output;          // (vocabulary, D)
  float logit_scale = 1;  // onto the logits
  float logit_cap = 0;    // cap tanh(logit / cap) instead; 0: none: Gemma 2, arXiv:2408.00118

  /// embeddings: (rows, length, D), of tokens or whatever else is to be continued; changes in
  /// place. Result: what the output product takes, likewise. Every layer gets a command buffer of
  /// its own, "layers.N". Keys and values of all tokens are appended to the caches.
  Tensor operator()(ProgramBuilder& builder, const Tensor& embeddings,
                    const CausalState& state) const;
  /// Whether layers keep a state, which cannot be taken back to an earlier token.
  bool keeps_states() const;
  /// CausalAttention::Rope::original_context of the layers; 0: the room for a sequence changes
  /// nothing of what it gives.
  uint32_t original_context() const;
  /// In f32 whatever the activations are: what is chosen hangs on small differences.
  /// x: (..., D); result: (..., vocabulary).
  Tensor logits(ProgramBuilder& builder, const Tensor& x, const AdapterScales* adapters) const;
};

}  // namespace mulciber
