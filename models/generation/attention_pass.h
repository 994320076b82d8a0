// Whole passes of a network for its attention maps, for hosts that run them in slices and read the
// maps on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/control.h"
#include "runtime/host_copy.h"
#include "runtime/pipeline.h"
#include "runtime/slices.h"

namespace mulciber {

/// The maps of one layer, head after head.
struct LayerMaps {
  uint32_t heads = 0;
  PaddedRows first;           // of head 0
  uint64_t bytes_a_head = 0;  // from one head to the next, padding included

  PaddedRows head(uint32_t index) const;
};
/// map: (1, heads, queries, keys) f32 where a program left it, of which so many queries and keys
/// count.
LayerMaps layer_maps(const Program& program, const Tensor& map, uint32_t queries, uint32_t keys);

/// By layers; empty where the network has none of that kind.
struct AttentionLayers {
  std::vector<LayerMaps> encoder, decoder, cross;

  /// As many rows as the map with the most has, each as long as the longest.
  PaddedRows largest() const;
};

/// What attention passes are dispatched with, planned without a device's memory.
struct AttentionPasses {
  std::vector<PipelineKey> keys;
  PaddedRows largest;  // as AttentionLayers::largest(); nothing stands at its view

  /// Takes note of a pass's nodes and of a map of its trace.
  void add(const ProgramBuilder& builder, const Capabilities& device);
  void add(const Tensor& map);
};

/// Lengths that passes are built for, so that one of at most twice a text's length serves every
/// text up to the longest: `least`, twice that, and so on, then `most`.
std::vector<uint32_t> pass_lengths(uint32_t least, uint32_t most);

/// A stage of one program, which nobody else uses meanwhile.
class AttentionPass : public StageSource {
 public:
  std::optional<Stage> next() override;
  void ended(uint64_t) override { ended_ = true; }
  bool done() const override { return ended_; }

  /// Of the text that was begun last.
  const AttentionLayers& layers() const { return layers_; }
  /// The largest map of the longest texts, as AttentionLayers::largest().
  virtual PaddedRows largest_map() const = 0;

 protected:
  /// words: of control, before the pass. Nothing of the pass before is under way.
  void begin(Program& program, const BufferView& control, const ControlWords& words,
             AttentionLayers layers);

 private:
  Program* program_ = nullptr;
  BufferUpdate update_;
  AttentionLayers layers_;
  bool given_ = false, ended_ = false;
};

}  // namespace mulciber
