// The decoder-only families: each reads its configuration into a DecoderConfig, whose other fields
// models/decoder_model.h turns into a network.
#pragma once

#include "models/families/decoder_config.h"

namespace mulciber {

/// Radford et al. 2019, "Language models are unsupervised multitask learners".
DecoderConfig read_gpt2(const ConfigReader& config);
/// Touvron et al. 2023, arXiv:2302.13971; Grattafiori et al. 2024, arXiv:2407.21783; with a sliding
/// window Jiang et al. 2023, arXiv:2310.06825 (Mistral).
DecoderConfig read_llama(const ConfigReader& config);
/// Yang et al. 2024, arXiv:2407.10671.
DecoderConfig read_qwen2(const ConfigReader& config);
/// Yang et al. 2025, arXiv:2505.09388.
DecoderConfig read_qwen3(const ConfigReader& config);
/// Gemma Team 2025, arXiv:2503.19786; the text model.
DecoderConfig read_gemma3(const ConfigReader& config);
/// The same in a checkpoint that has a vision tower as well, which is not read: pictures cannot be
/// given.
DecoderConfig read_gemma3_with_vision(const ConfigReader& config);

}  // namespace mulciber
