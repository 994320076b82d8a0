// An encoder-decoder Transformer's configuration, whatever its family.
#pragma once

#include <memory>

#include "models/core/architecture.h"
#include "models/families/encoder_decoder_family.h"
#include "models/translation/encoder_decoder_model.h"

namespace mulciber {

/// A checkpoint's configuration as its family reads it, with that of generation_config.json. Throws
/// ModelError, also when the family is not an encoder-decoder.
EncoderDecoderConfig read_encoder_decoder_config(const Checkpoint& checkpoint);
/// An Architecture, by which the model is planned and loaded. Throws ModelError.
std::unique_ptr<const Architecture> read_encoder_decoder(const Checkpoint& checkpoint,
                                                         const EncoderDecoderFamily& family);

/// The model of a configuration. Throws ModelError when it and the tensors disagree, DeviceError
/// when the weights do not fit.
std::unique_ptr<EncoderDecoderModel> load_encoder_decoder(Device& device,
                                                          const Checkpoint& checkpoint,
                                                          const EncoderDecoderConfig& config,
                                                          const ModelOptions& options);

}  // namespace mulciber
