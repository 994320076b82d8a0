// Translation models with recurrent encoders and decoders. docs/guide/recurrence.md describes their
// files.
#pragma once

#include "models/core/architecture.h"
#include "models/translation/encoder_decoder_model.h"

namespace mulciber {

struct RecurrentConfig {
  bool additive = false;        // "bahdanau"; otherwise "luong"
  uint32_t embedding_size = 0;  // D, for both languages and the output
  uint32_t hidden_size = 0;     // H, for every cell
  uint32_t attention_size = 0;  // for additive scores
  uint32_t layers = 1;          // in Luong's encoder and decoder
  uint32_t vocabulary = 0;
  uint32_t context = 0;
  bool scale_embedding = false;  // embeddings times sqrt(D)
  GenerationConfig generation;   // eos, pad and decoder_start are set
};
/// Throws ModelError naming file and key.
RecurrentConfig read_recurrent_config(const Checkpoint& checkpoint);

/// Names, shapes and source names of every weight. Cells and their gates are PyTorch's (nn.GRU,
/// nn.LSTM).
WeightTable recurrent_weight_table(const RecurrentConfig& config);

/// Bahdanau's or Luong's encoder-decoder, as config.json says (layers/recurrent_decoder.h).
/// Matrices may be stored in 16 bits; activations are f32 whatever the options ask for.
class RecurrentTranslation : public EncoderDecoderModel {
 public:
  /// config: the checkpoint's. Throws ModelError when it and the tensors disagree, DeviceError when
  /// the weights do not fit.
  RecurrentTranslation(Device& device, const Checkpoint& checkpoint, const RecurrentConfig& config,
                       const ModelOptions& options);
};

/// An Architecture, by which the model is planned and loaded. Throws as read_recurrent_config().
std::unique_ptr<const Architecture> read_recurrent_translation(const Checkpoint& checkpoint);

}  // namespace mulciber
