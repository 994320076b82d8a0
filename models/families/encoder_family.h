// The encoder-only families: one record each, which says all that this library knows of them.
#pragma once

#include "checkpoints/checkpoint.h"
#include "models/families/encoder_config.h"

namespace mulciber {

struct EncoderFamily {
  const char* model_type;  // of config.json
  /// Throws ModelError naming file and key.
  EncoderConfig (*read)(const ConfigReader& config);
};

/// Devlin et al. 2019, arXiv:1810.04805.
extern const EncoderFamily kBert;
/// Liu et al. 2019, arXiv:1907.11692.
extern const EncoderFamily kRoberta;
/// Conneau et al. 2020, arXiv:1911.02116: RoBERTa of a hundred languages.
extern const EncoderFamily kXlmRoberta;
/// Sanh et al. 2019, arXiv:1910.01108.
extern const EncoderFamily kDistilBert;
/// Clark et al. 2020, arXiv:2003.10555; the discriminator.
extern const EncoderFamily kElectra;
/// Song et al. 2020, arXiv:2004.09297.
extern const EncoderFamily kMpnet;
/// Lan et al. 2020, arXiv:1909.11942.
extern const EncoderFamily kAlbert;
/// Warner et al. 2024, arXiv:2412.13663.
extern const EncoderFamily kModernBert;
/// Nussbaum et al. 2024, arXiv:2402.01613.
extern const EncoderFamily kNomicBert;

/// He et al. 2021, arXiv:2006.03654 and arXiv:2111.09543.
extern const EncoderFamily kDebertaV2;

inline constexpr const EncoderFamily* kEncoderFamilies[] = {
    &kBert,  &kRoberta, &kXlmRoberta, &kDistilBert, &kElectra,
    &kMpnet, &kAlbert,  &kModernBert, &kNomicBert,  &kDebertaV2};

}  // namespace mulciber
