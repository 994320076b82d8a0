// The encoder-decoder Transformers: one record each, which says all that this library knows of
// them.
#pragma once

#include "models/families/encoder_decoder_config.h"

namespace mulciber {

struct EncoderDecoderFamily {
  const char* model_type;  // of config.json
  /// Throws ModelError naming file and key.
  EncoderDecoderConfig (*read)(const ConfigReader& config, const ConfigReader* generation);
  bool rewrites = false;  // it was not made for translation alone: summaries, answers, corrections
};

/// Junczys-Dowmunt et al. 2018, arXiv:1804.00344; names as in Hugging Face's MarianMTModel.
extern const EncoderDecoderFamily kMarian;
/// Lewis et al. 2019, arXiv:1910.13461.
extern const EncoderDecoderFamily kBart;
/// Fan et al. 2020, arXiv:2010.11125; NLLB Team 2022, arXiv:2207.04672.
extern const EncoderDecoderFamily kM2m100;
/// Raffel et al. 2020, arXiv:1910.10683; with gates (Shazeer 2020, arXiv:2002.05202) T5 v1.1 and
/// Flan-T5 (Chung et al. 2022, arXiv:2210.11416).
extern const EncoderDecoderFamily kT5;
/// Xue et al. 2021, arXiv:2010.11934: T5 v1.1 of a hundred languages.
extern const EncoderDecoderFamily kMt5;

inline constexpr const EncoderDecoderFamily* kEncoderDecoderFamilies[] = {&kMarian, &kBart,
                                                                          &kM2m100, &kT5, &kMt5};

}  // namespace mulciber
