// Mamba and Falcon Mamba: selective state-space layers; Falcon Mamba normalizes dt, B and C.
#include <nlohmann/json.hpp>

#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr const char* kMambaPrefixes[] = {"backbone."};

constexpr DecoderNames kMambaNames = {.prefixes = kMambaPrefixes,
                                      .layer = "layers.",
                                      .embedding = "embeddings",
                                      .final_norm = "norm_f",
                                      .output = "lm_head",
                                      .output_prefixes = kNoPrefix,
                                      .attention_norm = "norm",
                                      .state_in = "mixer.in_proj",
                                      .state_select = "mixer.x_proj",
                                      .state_step = "mixer.dt_proj",
                                      .state_out = "mixer.out_proj",
                                      .convolution = "mixer.conv1d",
                                      .state_rates = "mixer.A_log",
                                      .state_skip = "mixer.D"};

constexpr GgufKey kMambaKeys[] = {{"context_length", "max_position_embeddings"},
                                  {"embedding_length", "hidden_size"},
                                  {"block_count", "num_hidden_layers"},
                                  {"ssm.conv_kernel", "conv_kernel"},
                                  {"ssm.inner_size", "intermediate_size"},
                                  {"ssm.state_size", "state_size"},
                                  {"ssm.time_step_rank", "time_step_rank"},
                                  {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"}};

constexpr DecoderNames mamba_gguf_names() {
  DecoderNames names = kGgufNames;
  names.state_in = "ssm_in";
  names.state_select = "ssm_x";
  names.state_step = "ssm_dt";
  names.state_out = "ssm_out";
  names.convolution = "ssm_conv1d";
  names.state_rates = "ssm_a";
  names.state_skip = "ssm_d";
  return names;
}

constexpr const char* kMambaNormEpsilon = "mixer_rms_eps";

/// Context in llama.cpp's converted files; the network itself has no limit.
constexpr int64_t kMambaContext = 1 << 20;

DecoderConfig read_mamba(const ConfigReader& config) {
  const auto positive = [&](const char* key, int64_t most) {
    return static_cast<uint32_t>(config.integer(key, 1, most));
  };
  DecoderConfig decoder;
  decoder.files = {
      .names = kMambaNames, .state_rates = SourceForm::kMinusExp, .flat_convolution = false};
  decoder.width = positive("hidden_size", kWidest);
  decoder.vocabulary = positive("vocab_size", kLargestVocab);
  decoder.context = static_cast<uint32_t>(
      config.integer_or("max_position_embeddings", kMambaContext, 1, kMostContext));
  decoder.layers.resize(positive("num_hidden_layers", kMostLayers), {.rope = std::nullopt});
  decoder.norms.epsilon = static_cast<float>(config.number_or("layer_norm_epsilon", 1e-5, 0, 1));
  DecoderStateSpace layer;
  layer.channels = static_cast<uint32_t>(config.integer_or(
      "intermediate_size", config.integer_or("expand", 2, 1, 64) * decoder.width, 1, kWidest));
  layer.states = positive("state_size", kWidest);
  layer.taps = positive("conv_kernel", kWidest);
  const Json* rank = config.find("time_step_rank");
  layer.rank = rank && rank->is_string() && *rank == "auto" ? (decoder.width + 15) / 16
                                                            : positive("time_step_rank", kWidest);
  layer.bias = config.boolean_or("use_bias", false);
  layer.convolution_bias = config.boolean_or("use_conv_bias", true);
  decoder.state_space = layer;
  if (read_activation(config, "hidden_act") != Activation::kSilu)
    config.fail("hidden_act", "is not silu, which is what the layers compute");
  decoder.output.tied = config.boolean_or("tie_word_embeddings", true);
  if (config.has(kMambaNormEpsilon))
    decoder.state_space->norm_epsilon =
        static_cast<float>(config.number_or(kMambaNormEpsilon, 1e-6, 0, 1));
  return decoder;
}

DecoderConfig read_falcon_mamba(const ConfigReader& config) {
  DecoderConfig decoder = read_mamba(config);
  if (!decoder.state_space->norm_epsilon) decoder.state_space->norm_epsilon = 1e-6f;
  return decoder;
}

void complete_mamba(const GgufMetadata& metadata, Json& config) {
  // Falcon Mamba's files have one epsilon, which llama.cpp uses for all norms.
  const GgufValue* norms = metadata.find("ssm.dt_b_c_rms");
  if (norms && norms->type == GgufType::kBool && norms->boolean())
    config[kMambaNormEpsilon] = metadata.number("attention.layer_norm_rms_epsilon", 1e-5);
  const auto has = [&](const char* tensor) {
    return metadata.checkpoint().find(tensor) != nullptr;
  };
  config["use_bias"] = has("blk.0.ssm_in.bias");
  config["use_conv_bias"] = has("blk.0.ssm_conv1d.bias");
}

constexpr const char* kMambaEndPieces[] = {"<|endoftext|>"};
constexpr const char* kFalconMambaEndPieces[] = {"<|im_end|>", "<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kMamba = {.model_type = "mamba",
                                        .read = read_mamba,
                                        .gguf = GgufFamily{.architecture = "mamba",
                                                           .keys = kMambaKeys,
                                                           .activation = "silu",
                                                           .names = mamba_gguf_names(),
                                                           .complete = complete_mamba},
                                        .end_pieces = kMambaEndPieces};

constinit const DecoderFamily kFalconMamba = {.model_type = "falcon_mamba",
                                              .read = read_falcon_mamba,
                                              .end_pieces = kFalconMambaEndPieces,
                                              .as_gguf = &kMamba};

}  // namespace mulciber
