// One text through an encoder, in slices: its vector and its states stay on the device.
#pragma once

#include <optional>
#include <vector>

#include "models/core/encoding_model.h"
#include "models/families/encoder_config.h"
#include "models/networks/text_encoder_network.h"
#include "runtime/host_copy.h"
#include "runtime/slices.h"

namespace mulciber {

/// What an EncodingPass reads, and makes of it.
struct EncodingStart {
  EncoderInput input;  // ids and types of a text; of embeddings nothing
  /// In place of ids: (tokens, columns of the table of words) f32, read by the first slice.
  std::optional<BufferView> embeddings;
  uint32_t tokens = 0;
  EncoderOutput output = EncoderOutput::kMean;
  bool normalized = false;
};

/// Adds what an output is made of states by: f32.
Tensor encoder_output(ProgramBuilder& builder, const TextEncoderNetwork& network,
                      EncoderOutput output, const Tensor& states, const Tensor& control,
                      const TextEncoderControl& layout);

/// Made by EncodingModel::start(). Must not outlive the network.
class EncodingPass : public StageSource {
 public:
  /// length: tokens that the program is built for.
  EncodingPass(Device& device, const TextEncoderNetwork& network, const EncodingStart& start,
               uint32_t length);

  /// What such a pass of that length dispatches; nothing is allocated.
  static std::vector<PipelineKey> pipelines(const Capabilities& device,
                                            const TextEncoderNetwork& network, uint32_t length,
                                            EncoderOutput output, bool normalized,
                                            bool from_embeddings);

  std::optional<Stage> next() override;
  void ended(uint64_t stages) override { ended_ = stages; }
  bool done() const override { return ended_ == stages(); }

  /// Of the whole pass.
  uint64_t stages() const { return embeddings_ ? 2 : 1; }
  uint32_t tokens() const { return tokens_; }
  /// One row.
  PaddedRows vector() const;
  /// A row for each token: those after the last layer.
  PaddedRows states() const;
  /// The vector on the host, of a pass that is done.
  std::vector<float> values() const;

 private:
  TextEncoderControl layout_;
  uint32_t tokens_;
  std::optional<BufferView> embeddings_;  // the host's
  Buffer control_, table_, copy_;
  ControlWords words_;
  Tensor vector_, states_;
  std::optional<Program> program_;
  uint64_t given_ = 0, ended_ = 0;
};

}  // namespace mulciber
