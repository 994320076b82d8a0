// Marian translation models.
#pragma once

#include "models/encoder_decoder_model.h"
#include "models/families/marian_config.h"
#include "models/model_options.h"

namespace mulciber {

/// Names, shapes and source names of every weight that a configuration asks for.
/// Optional weights (final_logits_bias) are in the table when the checkpoint has them.
WeightTable marian_weight_table(const MarianConfig& config, const Checkpoint& checkpoint);

/// An encoder-decoder Transformer with Marian's names, embeddings and output.
/// Source: Junczys-Dowmunt et al. 2018, arXiv:1804.00344; names as in Hugging Face's MarianMTModel.
class Marian : public EncoderDecoderModel {
 public:
  /// Throws ModelError when config and tensors disagree, DeviceError when the weights do not fit.
  Marian(Device& device, const Checkpoint& checkpoint, const ModelOptions& options);
};

}  // namespace mulciber
