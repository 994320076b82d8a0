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
/// Gemma 3 in a checkpoint with a vision tower. The tower is not read, so prompts cannot have
/// images.
extern const DecoderFamily kGemma3WithVision;

/// Gemma Team 2024, arXiv:2403.08295.
extern const DecoderFamily kGemma;
/// Gemma Team 2024, arXiv:2408.00118.
extern const DecoderFamily kGemma2;
/// Qwen Team 2024, "Qwen1.5-MoE", and Qwen 2 with experts: a shared expert beside the routed ones.
extern const DecoderFamily kQwen2Moe;
/// Yang et al. 2025, arXiv:2505.09388, with experts.
extern const DecoderFamily kQwen3Moe;
/// Gunasekar et al. 2023, arXiv:2306.11644; Phi 1, 1.5 and 2.
extern const DecoderFamily kPhi;
/// Black et al. 2022, arXiv:2204.06745; Biderman et al. 2023 (Pythia), arXiv:2304.01373.
extern const DecoderFamily kGptNeoX;
/// Almazrouei et al. 2023, arXiv:2311.16867; models with ALiBi are not supported.
extern const DecoderFamily kFalcon;
/// Lozhkov et al. 2024, arXiv:2402.19173.
extern const DecoderFamily kStarcoder2;
/// Bellagente et al. 2024, arXiv:2402.17834.
extern const DecoderFamily kStableLm;
/// Wang and Komatsuzaki 2021, "GPT-J-6B: a 6 billion parameter autoregressive language model".
extern const DecoderFamily kGptJ;
/// Groeneveld et al. 2024, arXiv:2402.00838.
extern const DecoderFamily kOlmo;
/// OLMo Team 2025, arXiv:2501.00656.
extern const DecoderFamily kOlmo2;
/// DeepSeek-AI 2024, arXiv:2405.04434; V2, V2 Lite.
extern const DecoderFamily kDeepSeekV2;
/// DeepSeek-AI 2024, arXiv:2412.19437; V3, R1 (Guo et al. 2025, arXiv:2501.12948).
extern const DecoderFamily kDeepSeekV3;
/// Agarwal et al. 2025, arXiv:2508.10925.
extern const DecoderFamily kGptOss;
/// Granite Team, IBM 2024, "Granite 3.0 language models".
extern const DecoderFamily kGranite;
/// Cohere 2024, Command R and Command R+; Cohere Team 2025, arXiv:2504.00698 (Command A, R7B).
extern const DecoderFamily kCohere;
extern const DecoderFamily kCohere2;
/// Bakouch et al. 2025, "SmolLM3: smol, multilingual, long-context reasoner".
extern const DecoderFamily kSmolLm3;
/// Team GLM 2024, arXiv:2406.12793; GLM-4-0414.
extern const DecoderFamily kGlm4;
/// Gu and Dao 2023, arXiv:2312.00752: state-space layers in place of attention and feed-forward.
extern const DecoderFamily kMamba;
/// Zuo et al. 2024, arXiv:2410.05355. GGUF files call it mamba.
extern const DecoderFamily kFalconMamba;

inline constexpr const DecoderFamily* kDecoderFamilies[] = {
    &kGpt2,       &kMixtral,    &kLlama,      &kMistral, &kQwen2,   &kQwen3,   &kQwen2Moe,
    &kQwen3Moe,   &kPhi,        &kPhi3,       &kGemma,   &kGemma2,  &kGemma3,  &kGemma3WithVision,
    &kDeepSeekV2, &kDeepSeekV3, &kGptOss,     &kGptJ,    &kGptNeoX, &kFalcon,  &kStarcoder2,
    &kStableLm,   &kOlmo,       &kOlmo2,      &kGranite, &kCohere,  &kCohere2, &kSmolLm3,
    &kGlm4,       &kMamba,      &kFalconMamba};

}  // namespace mulciber
