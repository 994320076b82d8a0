// Blocks of decoder-only networks: Transformers over a cache of keys and values (GPT-2 and its
// successors), and layers whose mixer keeps a state instead.
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
#include "layers/sequence_mixer.h"
#include "layers/trace.h"
#include "ops/rope.h"

namespace mulciber {

/// The state of a pass, which outlives programs.
struct CausalState {
  Tensor control;                    // u32
  ControlArray<uint32_t> positions;  // (rows): tokens in the cache before this pass
  std::span<const Tensor> caches;    // per layer: LayerCache::contexts() or pages(), with memory
  /// (rows): number of a row's tokens in this pass that count, for layers that keep a state.
  ControlArray<uint32_t> counts;
  /// (layers, heads), factors of each head's output; where the layers have sinks (layers, 2,
  /// heads): factors, then the sinks' logits (AttentionControl::head_mask).
  std::optional<ControlArray<float>> head_masks;
  /// (rows, heads): AttentionControl::split_counters.
  std::optional<ControlArray<uint32_t>> split_counters;
  /// (rows, pages of each): AttentionControl::pages.
  std::optional<ControlArray<uint32_t>> pages;
  uint32_t context = 0;  // tokens of a sequence in pages, which may have room for a few more
  std::optional<AdapterScales> adapters;  // none: products use the weights alone
  /// Whether several rows belong to one sequence, at consecutive positions: later rows then read
  /// the keys and values that earlier rows append in this pass.
  bool shares_rows = false;
  Trace* trace = nullptr;

  const AdapterScales* adapter_scales() const { return adapters ? &*adapters : nullptr; }
};

/// Attention of tokens to themselves and to the earlier tokens in the cache.
struct CausalAttention {
  uint32_t heads = 1, kv_heads = 1;  // heads / kv_heads query heads share keys and values
  uint32_t head_size = 0;
  uint32_t value_size = 0;  // size of a head of values; 0: head_size
  float scale = 1;          // factor of q k^T
  float soft_cap = 0;       // AttentionOptions::soft_cap
  uint32_t window = 0;      // tokens that a token sees, itself included; 0: all before it
  bool sinks = false;       // AttentionOptions::sinks
  float clip = 0;           // clamps queries, keys and values to [-clip, clip]; 0: no clamp
  struct Rope {
    Tensor angles;  // angles of layers/rope.h
    /// Replaces `angles` where the cache has room for more than `original_context` tokens
    /// (LongRoPE). All keys of a sequence are rotated with the same table, whatever its length.
    std::optional<Tensor> long_angles;
    uint32_t original_context = 0;
    uint32_t rotated = 0;
    bool interleaved = false;  // pairs are neighbours
  };
  std::optional<Rope> rope;        // none: positions are in the embedding
  std::optional<Tensor> qk_gains;  // (2, head_size): gains of the norm of queries and keys
  /// (groups, columns), for consecutive groups of columns from the first query on: each group is
  /// normalized before rotation, with gains of its own.
  std::vector<Tensor> group_gains;
  bool centers_groups = false;  // groups are normalized by layer norm without a bias
  float qk_epsilon = 0;
  /// Whether one token rotates, appends and attends in one dispatch, where a kernel row can.
  bool appends = false;
  Linear qkv;  // ((heads + 2 kv_heads) * head_size, D)
  Linear out;  // (D, heads * head_size)
  /// Replaces qkv. Heads attend over the narrow vectors themselves: head_size is the size of such a
  /// key, value_size the rank, and there is one head of keys.
  std::optional<LatentProjection> latent = {};

  uint32_t values() const { return value_size > 0 ? value_size : head_size; }
  uint32_t query_columns() const { return heads * head_size; }
  uint32_t cache_columns() const {
    return latent ? latent->key_columns() : kv_heads * (head_size + values());
  }

  /// x, result: (rows, length, D); with `add_to` the result is added to that tensor. Throws
  /// ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Operand& x, const CausalState& state,
                    uint32_t layer, const std::optional<Tensor>& add_to) const;

 private:
  /// Rotation of queries and keys; none: they are not rotated.
  std::optional<RopeOptions> rotation(const CausalState& state, const Tensor& cache) const;
};

/// A sublayer that mixes tokens, and feed-forward where there is any. Each takes the normalized
/// stream; a norm follows the addition of its result to the stream.
struct CausalLayer {
  CausalAttention attention;
  /// None: attention and feed-forward run in parallel and read the same stream. Source: Wang and
  /// Komatsuzaki 2021 (GPT-J).
  std::optional<Norm> after_attention;
  /// Norm of feed-forward's input in the parallel form; none: it reads attention's input. Source:
  /// Black et al. 2022, arXiv:2204.06745.
  std::optional<Norm> before_feed_forward;
  std::variant<FeedForward, MixtureOfExperts> feed_forward;
  Norm after_feed_forward;                  // for the next layer's attention, or the output
  std::optional<SequenceMixer> mixer = {};  // replaces attention and feed-forward

  /// What outlives a pass. keys_and_values: the type of attention's.
  LayerCache cache(DataType keys_and_values) const;
  /// x: the normalized stream; result: the normalized stream after this layer. Changes `stream` in
  /// place.
  Operand operator()(ProgramBuilder& builder, const Tensor& stream, const Operand& x,
                     const CausalState& state, uint32_t layer) const;
};

struct CausalDecoder {
  std::optional<Norm> first_norm;  // norm of the embedding, for layer 0
  std::vector<CausalLayer> layers;
  Linear output;          // (vocabulary, D)
  float logit_scale = 1;  // factor of the logits
  float logit_cap = 0;    // cap tanh(logit / cap); 0: no cap: Gemma 2, arXiv:2408.00118

  /// embeddings: (rows, length, D), of tokens or of any other input; changed in place. Result: the
  /// input of the output product, (rows, length, D). Each layer has a command buffer of its own,
  /// "layers.N". Keys and values of all tokens are appended to the caches.
  Tensor operator()(ProgramBuilder& builder, const Tensor& embeddings,
                    const CausalState& state) const;
  /// Whether a layer keeps a state, which cannot return to an earlier token.
  bool keeps_states() const;
  /// CausalAttention::Rope::original_context of the layers; 0: results do not depend on the
  /// capacity for a sequence.
  uint32_t original_context() const;
  /// Computes logits in f32 whatever the type of activations, because choices depend on small
  /// differences. x: (..., D); result: (..., vocabulary).
  Tensor logits(ProgramBuilder& builder, const Tensor& x, const AdapterScales* adapters) const;
};

}  // namespace mulciber
