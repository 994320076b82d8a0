// Feed-forward networks of a decoder-only network.
#pragma once

#include <string>

#include "models/networks/decoder_build.h"

namespace mulciber {

/// The feed-forward network of a layer without experts.
FeedForward decoder_feed_forward(const DecoderBuild& build, uint32_t layer);

/// Names in files, without ".weight".
struct GatedNames {
  const char *gate, *up, *down;
};
/// A gated network without biases beside a layer's experts, or in place of them. name: prefix of
/// its weights in the table.
FeedForward gated_feed_forward(const DecoderBuild& build, uint32_t layer, const std::string& name,
                               const GatedNames& names, uint64_t hidden);

}  // namespace mulciber
