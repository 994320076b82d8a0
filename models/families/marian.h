// Marian translation models.
#pragma once

#include "models/architecture.h"
#include "models/encoder_decoder_model.h"
#include "models/families/marian_config.h"

namespace mulciber {

/// Names, shapes and source names of every weight that a configuration asks for.
/// Optional weights (final_logits_bias) are in the table when the checkpoint has them.
WeightTable marian_weight_table(const MarianConfig& config, const Checkpoint& checkpoint);

/// An encoder-decoder Transformer with Marian's names, embeddings and output.
/// Source: Junczys-Dowmunt et al. 2018, arXiv:1804.00344; names as in Hugging Face's MarianMTModel.
class Marian : public EncoderDecoderModel {
 public:
  /// config: of the checkpoint. Throws ModelError when it and the tensors disagree, DeviceError
  /// when the weights do not fit.
  Marian(Device& device, const Checkpoint& checkpoint, const MarianConfig& config,
         const ModelOptions& options);
};

/// The configuration, to be planned and loaded. Throws as read_marian_config().
std::unique_ptr<const Architecture> read_marian(const Checkpoint& checkpoint);

}  // namespace mulciber
