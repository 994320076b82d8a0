// Programs of an encoder-decoder network: how encoding, a decoding step and a whole pass are built,
// and the memory that stands between them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "models/core/target_scores.h"
#include "models/networks/encoder_decoder_network.h"
#include "mulciber/translator.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/slices.h"

namespace mulciber {

/// Writes what a host gives for each head, and the network's own biases. Throws ModelError where
/// the factors are not as many as the heads.
void write_heads(ControlWords& control, const SourceControl& layout,
                 const EncoderDecoderNetwork& network, const HeadMasks& factors);

/// A step of a search: of every item that was encoded, or of those that are left of them.
struct SearchStep {
  SearchShape shape;
  SourceControl layout;
  BeamStateLayout beam;
  uint32_t words = 0;  // of control
  std::optional<Program> program;
};

/// The programs of a search, and what stands between them and between steps.
struct SearchPrograms {
  Buffer control, progress;
  /// Where scores are normalized over the ids that the rules leave: the network's output bias, with
  /// kBannedLogit at banned ids. Masking afterwards would leave their share in the sum.
  Buffer output_bias;
  std::vector<float> output_bias_values;
  std::vector<Buffer> kept;  // what the network keeps
  Buffer arena;              // of all steps
  SearchStep all;
  std::map<uint32_t, SearchStep> fewer;  // by items
  std::optional<Program> encode;         // of all, once it was asked for

  SearchPrograms(Device& device, const EncoderDecoderNetwork& network, const SearchShape& shape);
  /// The step of the first items of what is kept, with control of its own layout in the same
  /// memory. What it computes of an item has the bits that `all` would give.
  SearchStep& step_of(Device& device, const EncoderDecoderNetwork& network, uint32_t items);
  /// From the sources in the control of `all` to what is kept of them.
  Program& encode_whole(Device& device, const EncoderDecoderNetwork& network);
  /// What output_bias must hold so that these ids are not chosen.
  BufferUpdate output_bias_update(std::span<const uint32_t> banned) const;

 private:
  /// What the network keeps of so many items, and where their steps begin.
  std::vector<Tensor> state_of(const EncoderDecoderNetwork& network,
                               const SearchShape& shape) const;
  void add_step_to(ProgramBuilder& builder, const EncoderDecoderNetwork& network,
                   const SearchStep& step) const;
};
/// What the programs of a search of that shape are dispatched with; nothing is allocated.
std::vector<PipelineKey> search_pipelines(const Capabilities& device,
                                          const EncoderDecoderNetwork& network,
                                          const SearchShape& shape);

/// A whole pass: encoder and decoder in one program, everything asked for kept.
struct PassProgram {
  PassShape shape;
  SourceControl layout;
  ControlArray<uint32_t> target;  // (batch, target length) ids
  TargetScores scores;            // where the shape asks for them: a row per target id
  uint32_t words = 0;             // of control
  Buffer control;
  Trace trace;
  std::optional<Program> program;

  PassProgram(Device& device, const EncoderDecoderNetwork& network, const PassShape& wanted);
};
/// What a PassProgram without scores dispatches, added to a builder without a device; where its
/// results would stand.
Trace plan_pass(ProgramBuilder& builder, const EncoderDecoderNetwork& network,
                const PassShape& shape);

}  // namespace mulciber
