// Full passes of a network for its attention maps, for applications that run them in slices and
// read the maps on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/control.h"
#include "runtime/application_copy.h"
#include "runtime/pipeline.h"
#include "runtime/slices.h"

namespace mulciber {

/// The maps of one layer, head after head.
struct LayerMaps {
  uint32_t heads = 0;
  PaddedRows first;           // rows of head 0
  uint64_t bytes_a_head = 0;  // from one head to the next, padding included

  PaddedRows head(uint32_t index) const;
};
/// Describes a layer's maps where a program left them. map: (1, heads, queries, keys) f32, of which
/// the first `queries` rows and `keys` columns count.
LayerMaps layer_maps(const Program& program, const Tensor& map, uint32_t queries, uint32_t keys);

/// Maps by layer; a list is empty where the network has no attention of that kind.
struct AttentionLayers {
  std::vector<LayerMaps> encoder, decoder, cross;

  /// A shape that holds each of the maps: the most rows of any, and the longest row.
  PaddedRows largest() const;
};

/// The pipelines of attention passes, planned without device memory.
struct AttentionPasses {
  std::vector<PipelineKey> keys;
  /// Shape like that of AttentionLayers::largest(); its view is empty.
  PaddedRows largest;

  /// Add the pipelines of a pass's nodes, and a map of its trace.
  void add(const ProgramBuilder& builder, const Capabilities& device);
  void add(const Tensor& map);
};

/// Lengths for which passes are built: `least`, doubled until `most`, which is the last. For a text
/// of `least` tokens or more there is thus a pass of less than twice its length.
std::vector<uint32_t> pass_lengths(uint32_t least, uint32_t most);

/// A single stage that runs one program, which nobody else may use meanwhile.
class AttentionPass : public StageSource {
 public:
  bool next(Stage& stage) override;
  void ended(uint64_t) override { ended_ = true; }
  bool done() const override { return ended_; }

  /// The maps of the text that was begun last.
  const AttentionLayers& layers() const { return layers_; }
  /// The largest map of the longest texts, as AttentionLayers::largest().
  virtual PaddedRows largest_map() const = 0;

 protected:
  /// Begins a pass. words: contents of the control buffer before it. The pass before must have
  /// ended.
  void begin(Program& program, const BufferView& control, const ControlWords& words,
             AttentionLayers layers);

 private:
  Program* program_ = nullptr;
  BufferView control_;
  std::vector<uint32_t> words_;  // of control
  AttentionLayers layers_;
  bool given_ = false, ended_ = false;
};

}  // namespace mulciber
