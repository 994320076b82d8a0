// Hyperparameters out of configuration files, good ones and wrong ones.
#include "models/families/encoder_decoder_family.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/model_error.h"

namespace {

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

Json marian() {
  return Json::parse(R"({
    "model_type": "marian", "d_model": 48, "encoder_layers": 2, "decoder_layers": 3,
    "encoder_attention_heads": 3, "decoder_attention_heads": 4, "encoder_ffn_dim": 100,
    "decoder_ffn_dim": 84, "vocab_size": 273, "decoder_vocab_size": 273,
    "max_position_embeddings": 64, "activation_function": "swish", "scale_embedding": true,
    "share_encoder_decoder_embeddings": true, "tie_word_embeddings": true, "bos_token_id": null,
    "eos_token_id": 0, "pad_token_id": 272, "decoder_start_token_id": 272, "forced_eos_token_id": 0,
    "num_beams": 6})");
}

EncoderDecoderConfig read(const Json& json, const ConfigReader* generation = nullptr) {
  return read_encoder_decoder_config(kMarian, ConfigReader(json, "config.json"), generation);
}

/// The message for the base configuration with `key` set to `value` (or removed), "" when it is
/// accepted.
std::string config_refusal(const char* key, const std::optional<Json>& value) {
  Json json = marian();
  if (value) {
    json[key] = *value;
  } else {
    json.erase(key);
  }
  return model_error([&] { read(json); }).value_or("");
}

}  // namespace

TEST_CASE("a Marian configuration is read") {
  const Json json = marian();
  const EncoderDecoderConfig config = read(json);
  CHECK(config.width == 48);
  CHECK(config.encoder.layers == 2);
  CHECK(config.decoder.layers == 3);
  CHECK(config.encoder.head_size == 16);
  CHECK(config.decoder.head_size == 12);
  CHECK(config.encoder.hidden == 100);
  CHECK(config.decoder.hidden == 84);
  CHECK(config.source_vocabulary == 273);
  CHECK(config.context == 64);
  CHECK(config.feed_forward.activation == Activation::kSilu);
  CHECK(config.embedding.scale == std::sqrt(48.0f));
  CHECK(config.embedding.positions == Seq2SeqPositions::kSinusoids);
  CHECK(config.norms.place == NormPlacement::kAfter);
  CHECK_FALSE(config.norms.final_norm);
  const GenerationConfig& generation = config.generation;
  CHECK_FALSE(generation.bos.has_value());
  CHECK(generation.eos == std::vector<std::int32_t>{0});
  CHECK(generation.pad == 272);
  CHECK(generation.decoder_start == 272);
  CHECK(generation.forced_eos == 0);
  CHECK(generation.num_beams == 6);
  CHECK(generation.early_stopping == EarlyStopping::kHeuristic);
  CHECK_FALSE(generation.max_length.has_value());
}

TEST_CASE("generation_config.json wins key by key") {
  const Json json = marian();
  const Json over = Json::parse(
      R"({"bad_words_ids": [[272], [1, 2]], "max_length": 512, "length_penalty": 0.6,
          "early_stopping": "never", "eos_token_id": [0, 5], "pad_token_id": null})");
  const ConfigReader generation(over, "generation_config.json");
  const GenerationConfig result = read(json, &generation).generation;
  CHECK(result.bad_words_ids == std::vector<std::vector<std::int32_t>>{{272}, {1, 2}});
  CHECK(result.max_length == 512);
  CHECK(result.length_penalty == 0.6);
  CHECK(result.early_stopping == EarlyStopping::kNever);
  CHECK(result.eos == std::vector<std::int32_t>{0, 5});
  CHECK(result.pad == 272);
  CHECK(result.num_beams == 6);
}

TEST_CASE("every activation name of the family is known") {
  const auto read = [](const char* name) {
    const Json json = {{"a", name}};
    return read_activation(ConfigReader(json, "x"), "a");
  };
  CHECK(read("relu") == Activation::kRelu);
  CHECK(read("gelu") == Activation::kGelu);
  CHECK(read("gelu_new") == Activation::kGeluTanh);
  CHECK(read("silu") == Activation::kSilu);
  CHECK(read("swish") == Activation::kSilu);
  CHECK(read("tanh") == Activation::kTanh);
  CHECK(read("quick_gelu") == Activation::kQuickGelu);
  CHECK_THAT(config_refusal("activation_function", "rellu"),
             ContainsSubstring("'rellu'") && ContainsSubstring("gelu_new"));
}

TEST_CASE("pre-norm models close with a norm unless they say otherwise") {
  Json json = marian();
  json["normalize_before"] = true;
  CHECK(read(json).norms.final_norm);
  json["add_final_layer_norm"] = false;
  CHECK_FALSE(read(json).norms.final_norm);
}

TEST_CASE("a wrong configuration is refused by file and key") {
  for (const char* key :
       {"model_type", "d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads",
        "decoder_attention_heads", "encoder_ffn_dim", "decoder_ffn_dim", "vocab_size",
        "max_position_embeddings", "activation_function", "eos_token_id", "pad_token_id"}) {
    CHECK_THAT(config_refusal(key, {}), ContainsSubstring("config.json") &&
                                            ContainsSubstring(key) && ContainsSubstring("missing"));
    CHECK_THAT(config_refusal(key, Json(nullptr)), ContainsSubstring("missing"));
    CHECK_THAT(config_refusal(key, Json::object()), ContainsSubstring(key));
    CHECK_THAT(config_refusal(key, Json::array({Json::array()})), ContainsSubstring(key));
    CHECK_THAT(config_refusal(key, -1), ContainsSubstring(key));
    CHECK_THAT(config_refusal(key, 1e30), ContainsSubstring(key));
    CHECK_THAT(config_refusal(key, std::uint64_t{1} << 63), ContainsSubstring(key));
    CHECK_THAT(config_refusal(key, true), ContainsSubstring(key));
  }
  CHECK_THAT(config_refusal("encoder_attention_heads", 5),
             ContainsSubstring("does not divide d_model, 48"));
  CHECK_THAT(config_refusal("d_model", 0), ContainsSubstring("from 1 to"));
  CHECK_THAT(config_refusal("decoder_layers", 1025), ContainsSubstring("1024"));
  CHECK_THAT(config_refusal("vocab_size", (1 << 24) + 1), ContainsSubstring("vocab_size"));
  CHECK_THAT(config_refusal("decoder_vocab_size", 300), ContainsSubstring("shared"));
  CHECK_THAT(config_refusal("model_type", "llama"), ContainsSubstring("'llama', not 'marian'"));
  CHECK_THAT(config_refusal("scale_embedding", "yes"), ContainsSubstring("true or false"));
  CHECK_THAT(config_refusal("pad_token_id", 273),
             ContainsSubstring("outside the vocabulary of 273"));
  CHECK_THAT(config_refusal("decoder_start_token_id", Json::array({1, 2})),
             ContainsSubstring("several"));
  CHECK_THAT(config_refusal("bad_words_ids", 3), ContainsSubstring("list of lists"));
  CHECK_THAT(config_refusal("bad_words_ids", Json::array({Json::array({999})})),
             ContainsSubstring("999"));
  CHECK_THAT(config_refusal("num_beams", 0), ContainsSubstring("num_beams"));
  CHECK_THAT(config_refusal("length_penalty", "1"), ContainsSubstring("length_penalty"));
  CHECK_THAT(config_refusal("early_stopping", "always"), ContainsSubstring("never"));
  CHECK_THAT(model_error([] { ConfigReader(Json::array(), "x.json"); }).value_or(""),
             ContainsSubstring("x.json: is not a JSON object"));
}

TEST_CASE("the Marian fixtures have the expected hyperparameters") {
  const fs::path fixtures = fixtures_dir();
  if (fixtures.empty()) MULCIBER_SKIP("no fixtures folder (set MULCIBER_FIXTURES)");
  const auto read_folder = [&](const char* name) {
    const Checkpoint checkpoint(fixtures / "models" / name);
    const ConfigReaders readers(checkpoint);
    return read_encoder_decoder_config(kMarian, readers.config, readers.generation_or_null());
  };
  const EncoderDecoderConfig config = read_folder("marian");
  CHECK(config.decoder.layers == 3);
  CHECK(config.generation.bad_words_ids == std::vector<std::vector<std::int32_t>>{{272}});
  CHECK(config.generation.max_length == 25);
  CHECK(read_folder("marian_realistic").encoder.layers == 3);
}
