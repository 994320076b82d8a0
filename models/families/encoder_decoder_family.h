// The encoder-decoder families: one record each, with everything that is specific to the family.
#pragma once

#include "models/families/encoder_decoder_config.h"

namespace mulciber {

struct EncoderDecoderFamily {
  const char* model_type;  // `model_type` of config.json
  /// Reads the configuration. Throws ModelError naming file and key.
  EncoderDecoderConfig (*read)(const ConfigReader& config, const ConfigReader* generation);
  bool rewrites = false;  // made for more than translation: summaries, answers, corrections
};

/// Junczys-Dowmunt et al. 2018, arXiv:1804.00344; names of Hugging Face's MarianMTModel.
extern const EncoderDecoderFamily kMarian;
/// Lewis et al. 2019, arXiv:1910.13461.
extern const EncoderDecoderFamily kBart;
/// Fan et al. 2020, arXiv:2010.11125; NLLB Team 2022, arXiv:2207.04672.
extern const EncoderDecoderFamily kM2m100;
/// Raffel et al. 2020, arXiv:1910.10683; T5 v1.1 and Flan-T5 (Chung et al. 2022, arXiv:2210.11416)
/// with gates (Shazeer 2020, arXiv:2002.05202).
extern const EncoderDecoderFamily kT5;
/// Xue et al. 2021, arXiv:2010.11934: T5 v1.1 for a hundred languages.
extern const EncoderDecoderFamily kMt5;

inline constexpr const EncoderDecoderFamily* kEncoderDecoderFamilies[] = {&kMarian, &kBart,
                                                                          &kM2m100, &kT5, &kMt5};

}  // namespace mulciber
