// Programs of an encoder-decoder network: how encoding, a decode step and a full pass are built,
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

/// Writes the factor that an application gives each head, and the network's own biases. Throws
/// ModelError where there are not as many factors as heads.
void write_heads(ControlWords& control, const SourceControl& layout,
                 const EncoderDecoderNetwork& network, const HeadMasks& factors);

/// A step of a search, over all encoded items or over those that are left of them.
struct SearchStep {
  SearchShape shape;
  SourceControl layout;
  BeamStateLayout beam;
  uint32_t words = 0;  // words of control
  std::optional<Program> program;
};

/// The programs of a search, and the memory that stands between them and between steps.
struct SearchPrograms {
  Buffer control, progress;
  /// The network's output bias, with kBannedLogit at banned ids, where scores are normalized over
  /// the ids that are left. Masking afterwards would leave the share of banned ids in the sum.
  Buffer output_bias;
  std::vector<float> output_bias_values;
  std::vector<Buffer> kept;  // tensors that the network keeps
  Buffer arena;              // shared by all steps
  SearchStep all;
  std::map<uint32_t, SearchStep> fewer;  // by number of items
  std::optional<Program> encode;         // for all items, built when it is first needed

  SearchPrograms(Device& device, const EncoderDecoderNetwork& network, const SearchShape& shape);
  /// The step over the first items, with a control layout of its own in the same memory. An item's
  /// results have the bits that `all` would give.
  SearchStep& step_of(Device& device, const EncoderDecoderNetwork& network, uint32_t items);
  /// Encodes the sources in the control of `all` to the kept tensors.
  Program& encode_whole(Device& device, const EncoderDecoderNetwork& network);
  /// The contents of output_bias with which these ids are not chosen.
  std::vector<uint32_t> output_bias_words(std::span<const uint32_t> banned) const;

 private:
  /// The kept buffers as tensors for the items of a shape.
  std::vector<Tensor> state_of(const EncoderDecoderNetwork& network,
                               const SearchShape& shape) const;
  void add_step_to(ProgramBuilder& builder, const EncoderDecoderNetwork& network,
                   const SearchStep& step) const;
};
/// Pipelines of the programs of a search of that shape; nothing is allocated.
std::vector<PipelineKey> search_pipelines(const Capabilities& device,
                                          const EncoderDecoderNetwork& network,
                                          const SearchShape& shape);

/// A full pass: encoder and decoder in one program, with all requested tensors kept.
struct PassProgram {
  PassShape shape;
  SourceControl layout;
  ControlArray<uint32_t> target;  // (batch, target length) ids
  TargetScores scores;            // where the shape asks for them: a row per target id
  uint32_t words = 0;             // words of control
  Buffer control;
  Trace trace;
  std::optional<Program> program;

  PassProgram(Device& device, const EncoderDecoderNetwork& network, const PassShape& wanted);
};
/// Adds the nodes of a PassProgram without scores to a builder without a device. Returns where its
/// results would stand.
Trace plan_pass(ProgramBuilder& builder, const EncoderDecoderNetwork& network,
                const PassShape& shape);

}  // namespace mulciber
