// A whole pass of an encoder-decoder network for its attention maps, for hosts that run it in
// slices and read the maps on the device.
#pragma once

#include <memory>
#include <vector>

#include "models/decoding/encoder_decoder_programs.h"
#include "runtime/host_copy.h"
#include "runtime/slices.h"

namespace mulciber {

/// The maps of one layer, head after head.
struct LayerMaps {
  uint32_t heads = 0;
  PaddedRows first;           // of head 0
  uint64_t bytes_a_head = 0;  // from one head to the next, padding included

  PaddedRows head(uint32_t index) const;
};

/// A stage of one program, which nobody else uses meanwhile.
class AttentionPass : public StageSource {
 public:
  /// control: words before the pass. outputs: of the network, with the lengths asked for.
  AttentionPass(std::shared_ptr<PassProgram> program, ControlWords control,
                const std::vector<NetworkOutput>& outputs);

  std::optional<Stage> next() override;
  void ended(uint64_t) override { ended_ = true; }
  bool done() const override { return ended_; }

  /// By layers; empty where the network has none of that kind.
  std::vector<LayerMaps> encoder, decoder, cross;

 private:
  std::shared_ptr<PassProgram> program_;
  ControlWords control_;
  bool given_ = false, ended_ = false;
};

}  // namespace mulciber
