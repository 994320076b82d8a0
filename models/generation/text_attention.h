// Attention maps of texts in slices: passes of a decoder-only network.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/generation/attention_pass.h"
#include "models/generation/traced_pass.h"

namespace mulciber {

/// Runs beside the network's sequences, which may be at work meanwhile. Must not outlive the
/// network.
class TextAttention : public AttentionPass {
 public:
  /// ids: of the first text; room: tokens of the longest text, 0: as many as the first has.
  /// adapters: scales of the first text, as chosen_adapters() gives them.
  TextAttention(Device& device, const DecoderNetwork& network, std::span<const uint32_t> ids,
                uint32_t room, std::span<const float> adapters = {});

  /// Plans the passes of a TextAttention with that room, for texts of at most `room` tokens.
  static AttentionPasses plan(const Capabilities& device, const DecoderNetwork& network,
                              uint32_t room);

  /// Begins a text. Throws ModelError for ids that are not the network's, SettingError for too
  /// many.
  void begin(std::span<const uint32_t> ids, std::span<const float> adapters = {});
  PaddedRows largest_map() const override;

 private:
  const DecoderNetwork& network_;
  std::vector<std::unique_ptr<TracedPass>> passes_;  // from short to long
};

}  // namespace mulciber
