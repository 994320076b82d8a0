#include "models/families/gemma.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace mulciber {
namespace {

DecoderConfig read_gemma1(const ConfigReader& given) {
  // The first files say "gelu" but mean the tanh approximation, which later files name.
  Json json = given.json();
  if (given.has("hidden_activation"))
    json["hidden_act"] = given.value("hidden_activation");
  else if (given.text_or("hidden_act", "gelu") == "gelu")
    json["hidden_act"] = "gelu_pytorch_tanh";
  const ConfigReader config(json, given.where(), given.remedy());
  DecoderConfig decoder = read_gemma(config, kLlamaNames);
  decoder.norms.place = NormPlace::kBefore;
  decoder.attention.scale = 1 / std::sqrt(static_cast<float>(decoder.attention.head_size));
  read_one_rope(config, decoder);
  return decoder;
}

}  // namespace

constinit const DecoderFamily kGemma = {.model_type = "gemma",
                                        .read = read_gemma1,
                                        .gguf = GgufFamily{.architecture = "gemma",
                                                           .activation_key = "hidden_activation",
                                                           .activation = "gelu_pytorch_tanh"},
                                        .end_pieces = kGemmaEndPieces};

}  // namespace mulciber
