// Translation models with recurrent encoders and decoders. docs/guide/recurrence.md describes their
// files.
#pragma once

#include "models/core/architecture.h"
#include "models/families/recurrent_config.h"
#include "models/translation/encoder_decoder_model.h"

namespace mulciber {

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
