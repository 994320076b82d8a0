// Decoders with heads of any even size, made at run time, against logits in double precision: of a
// whole pass, and those by which each next token is chosen.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include <fmt/format.h>

#include "models/generation/decoder_model.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/lora_families.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

using Numbers = std::vector<double>;

constexpr uint32_t kLayers = 2, kHeads = 4, kKeyHeads = 2, kWidth = 20, kHidden = 24,
                   kVocabulary = 40;
constexpr double kEpsilon = 1e-6, kBase = 10000;

/// A Llama, or with `gains` a Qwen 3, whose heads of queries and keys are normalized.
struct Made {
  uint32_t head_size = 0, rotated = 0;
  bool gains = false;
  MadeTensors tensors = {};
  std::map<std::string, Numbers> values = {};

  const Numbers& at(const std::string& name) const { return values.at(name + ".weight"); }
  std::string layer(uint32_t i, const char* part) const {
    return fmt::format("model.layers.{}.{}", i, part);
  }
};

Made make(uint32_t head_size, uint32_t rotated, bool gains) {
  Made model = {.head_size = head_size, .rotated = rotated, .gains = gains};
  std::mt19937 random(head_size);
  std::normal_distribution<float> normal;
  const auto add = [&](const std::string& name, std::vector<uint64_t> shape) {
    const bool matrix = shape.size() == 2;
    std::vector<float> drawn(matrix ? shape[0] * shape[1] : shape[0]);
    const float size = matrix ? 1.5f / std::sqrt(static_cast<float>(shape[1])) : 0.2f;
    for (float& value : drawn) value = size * normal(random) + (matrix ? 0.0f : 1.0f);
    model.values[name + ".weight"] = {drawn.begin(), drawn.end()};
    model.tensors[name + ".weight"] = {"F32", std::move(shape), bytes_of(drawn)};
  };
  const uint64_t queries = uint64_t{kHeads} * head_size, keys = uint64_t{kKeyHeads} * head_size;
  add("model.embed_tokens", {kVocabulary, kWidth});
  add("model.norm", {kWidth});
  add("lm_head", {kVocabulary, kWidth});
  for (uint32_t i = 0; i < kLayers; ++i) {
    add(model.layer(i, "input_layernorm"), {kWidth});
    add(model.layer(i, "post_attention_layernorm"), {kWidth});
    add(model.layer(i, "self_attn.q_proj"), {queries, kWidth});
    add(model.layer(i, "self_attn.k_proj"), {keys, kWidth});
    add(model.layer(i, "self_attn.v_proj"), {keys, kWidth});
    add(model.layer(i, "self_attn.o_proj"), {kWidth, queries});
    add(model.layer(i, "mlp.gate_proj"), {kHidden, kWidth});
    add(model.layer(i, "mlp.up_proj"), {kHidden, kWidth});
    add(model.layer(i, "mlp.down_proj"), {kWidth, kHidden});
    for (const char* part : {"self_attn.q_norm", "self_attn.k_norm"})
      if (gains) add(model.layer(i, part), {head_size});
  }
  return model;
}

void write(const Made& model, const std::filesystem::path& folder) {
  const nlohmann::json config = {{"model_type", model.gains ? "qwen3" : "llama"},
                                 {"hidden_size", kWidth},
                                 {"intermediate_size", kHidden},
                                 {"num_hidden_layers", kLayers},
                                 {"num_attention_heads", kHeads},
                                 {"num_key_value_heads", kKeyHeads},
                                 {"head_dim", model.head_size},
                                 {"partial_rotary_factor", double(model.rotated) / model.head_size},
                                 {"vocab_size", kVocabulary},
                                 {"max_position_embeddings", 64},
                                 {"rms_norm_eps", kEpsilon},
                                 {"rope_theta", kBase},
                                 {"hidden_act", "silu"},
                                 {"tie_word_embeddings", false}};
  write_file(folder / "model.safetensors", tensor_bytes(model.tensors));
  write_file(folder / "config.json", config.dump());
}

/// The library's computation written a second time from the papers, one token after another.
class SizesReference {
 public:
  explicit SizesReference(const Made& model) : model_(model), keys_(kLayers), values_(kLayers) {}

  /// Logits after the token.
  Numbers take(uint32_t id) {
    const Numbers& table = model_.at("model.embed_tokens");
    Numbers stream(table.begin() + id * kWidth, table.begin() + (id + 1) * kWidth);
    for (uint32_t i = 0; i < kLayers; ++i) {
      add(stream, attention(i, norm(stream, model_.layer(i, "input_layernorm"))));
      const Numbers x = norm(stream, model_.layer(i, "post_attention_layernorm"));
      Numbers gate = product(model_.layer(i, "mlp.gate_proj"), x);
      const Numbers up = product(model_.layer(i, "mlp.up_proj"), x);
      for (size_t j = 0; j < gate.size(); ++j) gate[j] *= up[j] / (1 + std::exp(-gate[j]));
      add(stream, product(model_.layer(i, "mlp.down_proj"), gate));
    }
    ++position_;
    return product("lm_head", norm(stream, "model.norm"));
  }

 private:
  static void add(Numbers& to, const Numbers& x) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += x[i];
  }
  Numbers product(const std::string& name, const Numbers& x) const {
    const Numbers& matrix = model_.at(name);
    Numbers y(matrix.size() / x.size());
    for (size_t row = 0; row < y.size(); ++row)
      for (size_t i = 0; i < x.size(); ++i) y[row] += matrix[row * x.size() + i] * x[i];
    return y;
  }
  static void normalize(double* x, size_t size, const Numbers& gains) {
    double squares = 0;
    for (size_t i = 0; i < size; ++i) squares += x[i] * x[i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(size) + kEpsilon);
    for (size_t i = 0; i < size; ++i) x[i] *= scale * gains[i];
  }
  Numbers norm(Numbers x, const std::string& name) const {
    normalize(x.data(), x.size(), model_.at(name));
    return x;
  }
  /// Normalizes each head, where there are gains, and rotates it by the position.
  void turn(Numbers& heads, const std::string& gains) const {
    const uint32_t half = model_.rotated / 2;
    for (size_t first = 0; first < heads.size(); first += model_.head_size) {
      double* head = &heads[first];
      if (model_.gains) normalize(head, model_.head_size, model_.at(gains));
      for (uint32_t i = 0; i < half; ++i) {
        const double angle = position_ * std::pow(kBase, -2.0 * i / model_.rotated);
        const double a = head[i], b = head[i + half];
        head[i] = a * std::cos(angle) - b * std::sin(angle);
        head[i + half] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
  Numbers attention(uint32_t i, const Numbers& x) {
    const uint32_t size = model_.head_size;
    Numbers queries = product(model_.layer(i, "self_attn.q_proj"), x),
            key = product(model_.layer(i, "self_attn.k_proj"), x);
    turn(queries, model_.layer(i, "self_attn.q_norm"));
    turn(key, model_.layer(i, "self_attn.k_norm"));
    keys_[i].push_back(key);
    values_[i].push_back(product(model_.layer(i, "self_attn.v_proj"), x));
    Numbers context(queries.size());
    for (uint32_t head = 0; head < kHeads; ++head) {
      const uint32_t first = head / (kHeads / kKeyHeads) * size;
      Numbers weights;
      double sum = 0;
      for (const Numbers& seen : keys_[i]) {
        double score = 0;
        for (uint32_t d = 0; d < size; ++d) score += queries[head * size + d] * seen[first + d];
        sum += weights.emplace_back(std::exp(score / std::sqrt(size)));
      }
      for (size_t t = 0; t < weights.size(); ++t)
        for (uint32_t d = 0; d < size; ++d)
          context[head * size + d] += weights[t] / sum * values_[i][t][first + d];
    }
    return product(model_.layer(i, "self_attn.o_proj"), context);
  }

  const Made& model_;
  std::vector<std::vector<Numbers>> keys_, values_;  // by layer and position
  double position_ = 0;
};

/// Checks a pass over a prompt and the tokens after it, with keys and values stored in `cache`.
void check(const Made& made, const std::filesystem::path& folder, DataType cache) {
  INFO("heads of " << made.head_size << ", of which " << made.rotated << " rotate, "
                   << name_of(cache) << " caches");
  const std::vector<uint32_t> prompt = {5, 17, 3, 31, 11, 2, 9};
  const Checkpoint checkpoint(folder);
  DecoderModel model(shared_device(), checkpoint, read_decoder_config(checkpoint),
                     {.cache = cache});
  const std::vector<std::string> wanted = {"logits"};
  const Numbers found =
      model.forward({{"input_ids", {{1, prompt.size()}, {prompt.begin(), prompt.end()}}}}, wanted)
          .at("logits")
          .values;
  SizesReference reference(made);
  Numbers expected, last;
  for (const uint32_t id : prompt) {
    last = reference.take(id);
    expected.insert(expected.end(), last.begin(), last.end());
  }
  // A key in 16 bits has 11 significant bits.
  const double tolerance = cache == DataType::kF32 ? 2e-5 : 5e-3;
  CHECK(difference(found, expected) < tolerance);

  SequenceSlots slots = slots_of(model.network(), 1, 24);
  const std::vector<uint32_t> ids = greedy(slots, prompt, 6);
  REQUIRE(ids.size() == 6);
  for (const uint32_t id : ids) {
    const double best = *std::ranges::max_element(last);
    CHECK(last[id] >= best - tolerance * std::max(best, 1.0));
    last = reference.take(id);
  }
}

}  // namespace

TEST_CASE("Heads of any even size up to 256 meet their values in double precision") {
  for (const uint32_t head_size : share_of({2u, 6u, 10u, 14u, 18u, 34u, 66u, 130u, 254u, 256u})) {
    // The last head size rotates only a part of each head: an odd number of pairs, in a head whose
    // size is a multiple of four.
    const bool gains = head_size % 3 != 2;
    const Made made = make(head_size, head_size == 256 ? 126 : head_size, gains);
    const TemporaryFolder folder;
    write(made, folder.path());
    for (const DataType cache : {DataType::kF32, DataType::kF16}) check(made, folder.path(), cache);
  }
}
