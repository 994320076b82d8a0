// The decoder-only families, each a record in a file of its own.
#pragma once

#include "models/families/decoder_family.h"

namespace mulciber {

/// Radford et al. 2019, "Language models are unsupervised multitask learners".
extern const DecoderFamily kGpt2;
/// Touvron et al. 2023, arXiv:2302.13971; Grattafiori et al. 2024, arXiv:2407.21783.
extern const DecoderFamily kLlama;
/// Jiang et al. 2023, arXiv:2310.06825: Llama with a sliding window. GGUF files call it llama.
extern const DecoderFamily kMistral;
/// Jiang et al. 2024, arXiv:2401.04088: Mistral with experts. GGUF files call it llama.
extern const DecoderFamily kMixtral;
/// Yang et al. 2024, arXiv:2407.10671.
extern const DecoderFamily kQwen2;
/// Yang et al. 2025, arXiv:2505.09388.
extern const DecoderFamily kQwen3;
/// Abdin et al. 2024, arXiv:2404.14219.
extern const DecoderFamily kPhi3;
/// Gemma Team 2025, arXiv:2503.19786; the text model.
extern const DecoderFamily kGemma3;
/// The same in a checkpoint that has a vision tower as well, which is not read: pictures cannot be
/// given.
extern const DecoderFamily kGemma3WithVision;

inline constexpr const DecoderFamily* kDecoderFamilies[] = {
    &kGpt2, &kMixtral, &kLlama, &kMistral, &kQwen2, &kQwen3, &kPhi3, &kGemma3, &kGemma3WithVision};

}  // namespace mulciber
