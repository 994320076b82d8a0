#include "models/loading/read_architecture.h"

#include "models/encoding/text_encoder_model.h"
#include "models/generation/decoder_architecture.h"
#include "models/speech/whisper_model.h"
#include "models/translation/encoder_decoder_architecture.h"
#include "models/translation/recurrent_translation.h"
#include "models/vision/image_text_reader_model.h"
#include "models/vision/vision_language_model.h"
#include "models/vision/vision_model.h"

namespace mulciber {

std::unique_ptr<const Architecture> read_architecture(const Checkpoint& checkpoint,
                                                      const ModelFamily& family) {
  switch (family.kind) {
    case ModelKind::kDecoder: return read_decoder(checkpoint, *family.decoder);
    case ModelKind::kTextEncoder: return read_text_encoder(checkpoint, *family.encoder);
    case ModelKind::kEncoderDecoder:
      return read_encoder_decoder(checkpoint, *family.encoder_decoder);
    case ModelKind::kRecurrentTranslation: return read_recurrent_translation(checkpoint);
    case ModelKind::kVision: return read_vision(checkpoint, *family.vision);
    case ModelKind::kVisionLanguage:
      return read_vision_language(checkpoint, *family.vision_language);
    case ModelKind::kSpeech: return read_whisper(checkpoint);
    case ModelKind::kImageTextReader: return read_image_text_reader(checkpoint);
  }
  return nullptr;
}

}  // namespace mulciber
