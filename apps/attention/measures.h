// Measures of attention maps: how widely each head attends, and the attention rollout through all
// layers. The code runs on the CPU; docs/guide/attention-maps.md has the formulas.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "apps/attention/page.h"

namespace mulciber::apps {

/// Means over the rows of one map that have weights; NaN where no row has any.
struct MapMeasures {
  double entropy = 0;  // bits: 0 where one key takes all, log2(keys) where all weigh the same
  double largest = 0;  // the row's largest weight
};
/// map: (queries, keys). Rows with a weight that is not finite are left out.
MapMeasures measure_map(std::span<const float> map, std::size_t keys);
/// The measures of every layer and head: (layers, heads) row-major.
std::vector<MapMeasures> measure_heads(const SentenceMaps::Kind& kind);

/// Attention rollout (Abnar and Zuidema 2020, arXiv:2005.00928): the share of each input token in
/// each position after layer l, where a layer's output counts as half its input and half the values
/// to which its heads, on average, attend. Returns one kind for each that `maps` has, named
/// encoder_rollout, decoder_rollout or cross_rollout, with one head; layer l is the product of
/// layers 0 to l. Through cross-attention a target position gets shares of the source: half of its
/// contents before come from the encoder's output to which it attends. cross_rollout has these
/// shares, decoder_rollout the shares of the target tokens read, and a position's two rows add up
/// to 1. Throws ShapeError as check_attention does.
std::vector<SentenceMaps::Kind> attention_rollout(const SentenceMaps& maps);

}  // namespace mulciber::apps
