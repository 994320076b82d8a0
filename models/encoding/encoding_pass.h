// A pass of an encoder over one text, in slices. Its embedding and hidden states stay on the
// device.
#pragma once

#include <optional>
#include <vector>

#include "models/core/encoding_model.h"
#include "models/families/encoder_config.h"
#include "models/networks/text_encoder_network.h"
#include "runtime/application_copy.h"
#include "runtime/slices.h"

namespace mulciber {

/// Input and output of an EncodingPass.
struct EncodingStart {
  EncoderInput input;  // ids and types of a text; empty with embeddings
  /// Instead of ids: (tokens, columns of the token embedding table) f32, read by the first slice.
  std::optional<BufferView> embeddings;
  uint32_t tokens = 0;
  EncoderOutput output = EncoderOutput::kMean;
  bool normalized = false;
};

/// Adds the operations from hidden states to an output. Returns f32.
Tensor encoder_output(ProgramBuilder& builder, const TextEncoderNetwork& network,
                      EncoderOutput output, const Tensor& states, const Tensor& control,
                      const TextEncoderControl& layout);

/// Created by EncodingModel::start(). It must not outlive the network.
class EncodingPass : public StageSource {
 public:
  /// length: tokens of the program, at least those of the text.
  EncodingPass(Device& device, const TextEncoderNetwork& network, const EncodingStart& start,
               uint32_t length);

  /// Pipelines of a pass of this length; nothing is allocated.
  static std::vector<PipelineKey> pipelines(const Capabilities& device,
                                            const TextEncoderNetwork& network, uint32_t length,
                                            EncoderOutput output, bool normalized,
                                            bool from_embeddings);

  bool next(Stage& stage) override;
  void ended(uint64_t stages) override { ended_ = stages; }
  bool done() const override { return ended_ == stages(); }

  /// Stages of the whole pass.
  uint64_t stages() const { return embeddings_ ? 2 : 1; }
  uint32_t tokens() const { return tokens_; }
  /// The embedding, one row.
  PaddedRows vector() const;
  /// Hidden states after the last layer, a row for each token.
  PaddedRows states() const;
  /// The embedding in CPU memory; the pass must be done.
  std::vector<float> values() const;

 private:
  TextEncoderControl layout_;
  uint32_t tokens_;
  std::optional<BufferView> embeddings_;  // in the application's buffer
  Buffer control_, table_, copy_;
  ControlWords words_;
  Tensor vector_, states_;
  std::optional<Program> program_;
  uint64_t given_ = 0, ended_ = 0;
};

}  // namespace mulciber
