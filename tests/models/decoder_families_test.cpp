// Features that single families need of the decoder network, against computations of the test's
// own.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "models/families/families.h"
#include "models/families/registry.h"
#include "models/generation/decoder_model.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr size_t kWidth = 8, kHidden = 12, kVocabulary = 10;
constexpr uint32_t kToken = 7;

/// A Llama of one layer, whose feed-forward network has biases.
Json config() {
  return Json::parse(R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 12,
      "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 10, "hidden_act": "silu",
      "max_position_embeddings": 16, "rms_norm_eps": 1e-6, "mlp_bias": true})");
}

using Values = std::vector<double>;

class TinyLlama {
 public:
  TinyLlama() {
    const auto add = [&](const std::string& name, std::vector<uint64_t> shape) {
      size_t elements = 1;
      for (const uint64_t extent : shape) elements *= extent;
      Values& values = tensors_[name].second;
      tensors_[name].first = shape;
      for (size_t i = 0; i < elements; ++i) values.push_back(normal_(random_));
    };
    add("model.embed_tokens.weight", {kVocabulary, kWidth});
    add("lm_head.weight", {kVocabulary, kWidth});
    add("model.norm.weight", {kWidth});
    const std::string layer = "model.layers.0.";
    add(layer + "input_layernorm.weight", {kWidth});
    add(layer + "post_attention_layernorm.weight", {kWidth});
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      add(layer + "self_attn." + name + ".weight", {kWidth, kWidth});
    for (const char* name : {"gate_proj", "up_proj"}) {
      add(layer + "mlp." + name + ".weight", {kHidden, kWidth});
      add(layer + "mlp." + name + ".bias", {kHidden});
    }
    add(layer + "mlp.down_proj.weight", {kWidth, kHidden});
    add(layer + "mlp.down_proj.bias", {kWidth});
  }

  void write(const std::filesystem::path& folder) const {
    Json header;
    std::string data;
    for (const auto& [name, tensor] : tensors_) {
      const size_t begin = data.size();
      for (const double value : tensor.second) {
        const auto narrow = static_cast<float>(value);
        data.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
      }
      header[name] = {
          {"dtype", "F32"}, {"shape", tensor.first}, {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    const uint64_t length = text.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    write_file(folder / "model.safetensors", file + text + data);
    write_file(folder / "config.json", config().dump());
  }

  /// Logits after one token, which attends to itself alone.
  Values logits() const {
    const Values& table = tensors_.at("model.embed_tokens.weight").second;
    Values stream(table.begin() + kToken * kWidth, table.begin() + (kToken + 1) * kWidth);
    const std::string layer = "model.layers.0.";
    Values x = norm(stream, layer + "input_layernorm");
    add(stream, linear(linear(x, layer + "self_attn.v_proj"), layer + "self_attn.o_proj"));
    x = norm(stream, layer + "post_attention_layernorm");
    const Values gate = linear(x, layer + "mlp.gate_proj");
    Values hidden = linear(x, layer + "mlp.up_proj");
    for (size_t i = 0; i < hidden.size(); ++i) hidden[i] *= gate[i] / (1 + std::exp(-gate[i]));
    add(stream, linear(hidden, layer + "mlp.down_proj"));
    return linear(norm(stream, "model.norm"), "lm_head");
  }

 private:
  static void add(Values& to, const Values& values) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += values[i];
  }
  Values norm(const Values& x, const std::string& name) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    Values y = x;
    for (size_t i = 0; i < x.size(); ++i)
      y[i] *= tensors_.at(name + ".weight").second[i] /
              std::sqrt(squares / static_cast<double>(x.size()) + 1e-6);
    return y;
  }
  Values linear(const Values& x, const std::string& name) const {
    const Values& weight = tensors_.at(name + ".weight").second;
    Values y(weight.size() / x.size());
    for (size_t row = 0; row < y.size(); ++row) {
      for (size_t i = 0; i < x.size(); ++i) y[row] += weight[row * x.size() + i] * x[i];
      if (const auto bias = tensors_.find(name + ".bias"); bias != tensors_.end())
        y[row] += bias->second.second[row];
    }
    return y;
  }

  std::map<std::string, std::pair<std::vector<uint64_t>, Values>> tensors_;
  std::mt19937 random_{11};
  std::normal_distribution<float> normal_{0, 0.5f};
};

}  // namespace

TEST_CASE("A Llama with biases in its feed-forward network has them added") {
  const TemporaryFolder folder;
  const TinyLlama reference;
  reference.write(folder.path());
  const Checkpoint checkpoint(folder.path());
  DecoderModel model(shared_device(), checkpoint, read_decoder_config(checkpoint), {});
  const std::vector<std::string> wanted = {"logits"};
  const NamedArrays found = model.forward({{"input_ids", {{1, 1}, {kToken}}}}, wanted);
  const Values expected = reference.logits();
  REQUIRE(found.at("logits").values.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("logit " << i);
    CHECK(std::abs(found.at("logits").values[i] - expected[i]) < 1e-5);
  }
}

TEST_CASE("Falcon Mamba is Mamba with norms of what a token selects") {
  Json json = {{"hidden_size", 16},   {"vocab_size", 40}, {"num_hidden_layers", 1},
               {"state_size", 4},     {"conv_kernel", 4}, {"time_step_rank", "auto"},
               {"hidden_act", "silu"}};
  const auto epsilon = [&](const DecoderFamily& family) {
    return family.read(ConfigReader(json, "config.json")).state_space->norm_epsilon;
  };
  CHECK_FALSE(epsilon(kMamba));
  CHECK(epsilon(kFalconMamba) == 1e-6f);
  json["mixer_rms_eps"] = 0.25;
  CHECK(epsilon(kFalconMamba) == 0.25f);
}

TEST_CASE("What a configuration leaves open or says to be nothing is as in transformers") {
  const auto read = [](const DecoderFamily& family, const Json& changes) {
    Json json = config();
    json.update(changes);
    return family.read(ConfigReader(json, "config.json"));
  };
  // null means no cap; an absent key means the usual cap.
  const DecoderConfig usual = read(kGemma2, Json::object());
  CHECK(usual.attention.soft_cap == 50);
  CHECK(usual.output.soft_cap == 30);
  const DecoderConfig none =
      read(kGemma2, {{"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", nullptr}});
  CHECK(none.attention.soft_cap == 0);
  CHECK(none.output.soft_cap == 0);
  // In SmolLM 3 the layers without rotation have the sliding window.
  const DecoderConfig sliding = read(kSmolLm3, {{"num_hidden_layers", 4},
                                                {"use_sliding_window", true},
                                                {"sliding_window", 8},
                                                {"no_rope_layers", {1, 0, 1, 0}}});
  for (const uint32_t layer : {0, 1, 2, 3}) {
    CHECK(sliding.layers[layer].rope.has_value() == (layer % 2 == 0));
    CHECK(sliding.layers[layer].window == (layer % 2 == 0 ? 0 : 8));
  }
  // A bias stays beside tied embeddings.
  for (const bool tied : {false, true}) {
    const Json changes = {{"n_embd", 16},      {"n_head", 2},     {"n_layer", 1},
                          {"n_positions", 32}, {"rotary_dim", 8}, {"tie_word_embeddings", tied}};
    CHECK(read(kGptJ, changes).output.bias);
  }
}

TEST_CASE("What no layer does yet is refused by name") {
  const Json json = config();
  const DecoderConfig known = kLlama.read(ConfigReader(json, "config.json"));
  CHECK_FALSE(decoder_weight_table(known).empty());
  const auto refusal = [&](auto&& change) {
    DecoderConfig config = known;
    change(config);
    return model_error([&] { decoder_weight_table(config); }).value_or("no error");
  };
  using Config = DecoderConfig;
  CHECK_THAT(refusal([](Config& c) {
               c.norms.kind = NormKind::kLayer;
               c.norms.place = NormPlace::kBoth;
             }),
             ContainsSubstring("layer norms after its sublayers"));
  CHECK_THAT(refusal([](Config& c) {
               c.residual = Residual::kParallel;
               c.norms.place = NormPlace::kAfter;
             }),
             ContainsSubstring("side by side with norms after them"));
  CHECK_THAT(refusal([](Config& c) { c.norms.bias = true; }),
             ContainsSubstring("root-mean-square norms with a bias"));
  CHECK_THAT(refusal([](Config& c) {
               c.norms.kind = NormKind::kLayer;
               c.residual_multiplier = 0.5f;
             }),
             ContainsSubstring("what joins its residual stream"));
  CHECK_THAT(refusal([](Config& c) { c.attention.head_size = 258; }),
             ContainsSubstring("has heads of 258 columns, and attention takes up to 256"));
  CHECK_THAT(refusal([](Config& c) {
               c.attention.qk_norm = QueryKeyNorm::kPerHead;
               c.layers[0].rope = std::nullopt;
             }),
             ContainsSubstring("normalized and not rotated"));
  CHECK_THAT(refusal([](Config& c) {
               c.feed_forward.experts =
                   DecoderExperts{.count = 4, .per_token = 2, .shared_hidden = 8};
               c.feed_forward.bias = true;
             }),
             ContainsSubstring("shared experts with biases"));
}
