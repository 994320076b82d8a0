#include "models/families/gguf_config.h"

#include <algorithm>

#include "checkpoints/tensor_values.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr const char* kNoPrefix[] = {""};
constexpr const char* kRopeFactors = "rope_freqs.weight";

struct Key {
  const char* gguf;    // behind the architecture and a dot
  const char* config;  // of Llama's kind, and GPT-2's where it differs
  const char* gpt2 = nullptr;
};

constexpr Key kKeys[] = {
    {"context_length", "max_position_embeddings", "n_positions"},
    {"embedding_length", "hidden_size", "n_embd"},
    {"block_count", "num_hidden_layers", "n_layer"},
    {"feed_forward_length", "intermediate_size", "n_inner"},
    {"attention.head_count", "num_attention_heads", "n_head"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {"attention.sliding_window", "sliding_window"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
};

// Keys that would change the numbers, where they are not 0.
constexpr const char* kRefused[] = {
    "expert_count",    "attention.clamp_kqv", "attention.max_alibi_bias", "logit_scale",
    "embedding_scale", "residual_scale",      "attention.scale",          "use_parallel_residual"};

// Files do not say what lies between the products of a feed-forward network: the architecture does.
struct Activated {
  const char* architecture;
  const char* activation;
};
constexpr Activated kActivations[] = {{"llama", "silu"},
                                      {"qwen2", "silu"},
                                      {"qwen3", "silu"},
                                      {"gemma3", "gelu_pytorch_tanh"},
                                      {"gpt2", "gelu_new"}};

// What the model's makers recommend, as generation_config.json has it.
struct SamplingKey {
  const char* gguf;
  const char* config;
  bool draws = true;  // it says that tokens are drawn
};
constexpr SamplingKey kSamplingKeys[] = {{"temp", "temperature"},
                                         {"top_k", "top_k"},
                                         {"top_p", "top_p"},
                                         {"min_p", "min_p"},
                                         {"penalty_repeat", "repetition_penalty", false},
                                         {"penalty_last_n", "penalty_last_n", false}};

class MetadataReader {
 public:
  MetadataReader(const Checkpoint& checkpoint, std::string architecture)
      : checkpoint_(checkpoint),
        file_(*checkpoint.gguf()),
        architecture_(std::move(architecture)) {}

  [[noreturn]] void fail(const std::string& key, const std::string& problem) const {
    throw ModelError(file_.path().string(), "metadata '" + key + "' " + problem,
                     "the file does not describe a model that can be run");
  }
  std::string full(const std::string& key) const { return architecture_ + "." + key; }
  const GgufValue* find(const std::string& key) const { return file_.find_value(full(key)); }
  double number(const std::string& key, double fallback) const {
    const GgufValue* value = find(key);
    if (!value) return fallback;
    if (!value->is_number())
      fail(full(key), "is " + value->shown().dump() + "; a number is expected");
    return value->number();
  }

  Json read() const {
    Json config = {{"model_type", architecture_}};
    for (const Key& key : kKeys) {
      const GgufValue* value = find(key.gguf);
      if (!value) continue;
      if (!value->is_number())
        fail(full(key.gguf), "is " + value->shown().dump() + "; one number is expected");
      const char* name = key.gpt2 && architecture_ == "gpt2" ? key.gpt2 : key.config;
      config[name] = value->is_integer() ? Json(value->integer()) : Json(value->number());
    }
    for (const char* key : kRefused) {
      if (number(key, 0) != 0)
        fail(full(key), "is " + find(key)->shown().dump() + ", which is not supported");
    }
    config["vocab_size"] = vocabulary();
    for (const Activated& entry : kActivations) {
      if (architecture_ != entry.architecture) continue;
      config[architecture_ == "gpt2" ? "activation_function" : "hidden_act"] = entry.activation;
    }
    config["tie_word_embeddings"] = checkpoint_.find("output.weight") == nullptr;
    config["attention_bias"] = checkpoint_.find("blk.0.attn_q.bias") != nullptr;
    read_heads(config);
    read_scaling(config);
    read_sampling(config);
    for (const auto& [name, id] :
         {std::pair("bos_token_id", "bos"), {"eos_token_id", "eos"}, {"pad_token_id", "padding"}}) {
      const GgufValue* value = file_.find_value(std::string("tokenizer.ggml.") + id + "_token_id");
      if (value && value->is_integer()) config[name] = value->integer();
    }
    return config;
  }

 private:
  std::int64_t vocabulary() const {
    const CheckpointTensor& embedding = checkpoint_.at("token_embd.weight");
    if (embedding.shape.size() != 2)
      throw ModelError(file_.path().string(),
                       "tensor 'token_embd.weight' has shape " + embedding.shape_text(), "");
    return static_cast<std::int64_t>(embedding.shape[0]);
  }

  void read_heads(Json& config) const {
    const double heads = number("attention.head_count", 0), width = number("embedding_length", 0);
    const double key = number("attention.key_length", heads > 0 ? width / heads : 0);
    if (number("attention.value_length", key) != key)
      fail(full("attention.value_length"),
           "differs from the length of keys, which is not supported");
    if (number("rope.dimension_count", key) != key)
      fail(full("rope.dimension_count"),
           "is not the size of a head: heads that are rotated in part are not supported");
    if (architecture_ != "gemma3") return;
    // llama.cpp scales by the size of a head but in the 27B model, whose files do not say so
    // either.
    const bool largest = number("block_count", 0) == 62;
    config["query_pre_attn_scalar"] = largest ? width / heads : key;
  }

  void read_scaling(Json& config) const {
    const GgufValue* type = find("rope.scaling.type");
    if (!type) {
      const double scale = number("rope.scale_linear", 1);
      if (scale != 1) config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", scale}};
      return;
    }
    if (!type->is_text()) fail(full("rope.scaling.type"), "is not text");
    if (type->text() == "none") return;
    Json scaling = {{"rope_type", std::string(type->text())}};
    for (const auto& [name, key] :
         {std::pair("factor", "rope.scaling.factor"),
          {"original_max_position_embeddings", "rope.scaling.original_context_length"},
          {"beta_fast", "rope.scaling.yarn_beta_fast"},
          {"beta_slow", "rope.scaling.yarn_beta_slow"}}) {
      if (find(key)) scaling[name] = number(key, 0);
    }
    if (number("rope.scaling.attn_factor", 1) != 1)
      fail(full("rope.scaling.attn_factor"), "is not 1, which is not supported");
    config["rope_scaling"] = scaling;
  }

  /// Files without a temperature that filter tokens mean transformers' default, 1.
  void read_sampling(Json& config) const {
    bool draws = false;
    for (const SamplingKey& key : kSamplingKeys) {
      const std::string name = std::string("general.sampling.") + key.gguf;
      const GgufValue* value = file_.find_value(name);
      if (!value) continue;
      if (!value->is_number()) fail(name, "is " + value->shown().dump() + "; a number is expected");
      config[key.config] = value->is_integer() ? Json(value->integer()) : Json(value->number());
      draws = draws || key.draws;
    }
    if (draws) config["do_sample"] = config.value("temperature", 1.0) > 0;
  }

  const Checkpoint& checkpoint_;
  const GgufFile& file_;
  std::string architecture_;
};

}  // namespace

const DecoderNames kGgufNames = {.prefixes = kNoPrefix,
                                 .layer = "blk.",
                                 .embedding = "token_embd",
                                 .positions = "position_embd",
                                 .final_norm = "output_norm",
                                 .output = "output",
                                 .attention_norm = "attn_norm",
                                 .qkv = nullptr,
                                 .q = "attn_q",
                                 .k = "attn_k",
                                 .v = "attn_v",
                                 .q_norm = "attn_q_norm",
                                 .k_norm = "attn_k_norm",
                                 .attention_out = "attn_output",
                                 .after_attention_norm = "post_attention_norm",
                                 .feed_forward_norm = "ffn_norm",
                                 .gate = "ffn_gate",
                                 .up = "ffn_up",
                                 .down = "ffn_down",
                                 .after_feed_forward_norm = "post_ffw_norm"};

std::string gguf_architecture(const GgufFile& file) {
  const GgufValue* value = file.find_value("general.architecture");
  return value && value->is_text() ? std::string(value->text()) : std::string();
}

Json gguf_config(const Checkpoint& checkpoint) {
  return MetadataReader(checkpoint, gguf_architecture(*checkpoint.gguf())).read();
}

void adapt_to_gguf(DecoderConfig& decoder, const Checkpoint& checkpoint) {
  const bool one_matrix = decoder.names.qkv != nullptr;
  decoder.names = kGgufNames;
  if (one_matrix) decoder.names.qkv = "attn_qkv";
  decoder.gains_less_one = decoder.transposed = false;
  decoder.interleaved_pairs = gguf_architecture(*checkpoint.gguf()) == "llama";
  const CheckpointTensor* factors = checkpoint.find(kRopeFactors);
  if (!factors) return;
  if (factors->elements() > kMostPositions || !has_float_values(factors->type))
    throw ModelError(checkpoint.path().string(),
                     std::string("tensor '") + kRopeFactors + "' does not hold factors", "");
  const std::vector<float> values = read_floats(*factors, 0, factors->elements());
  for (RopeConfig& rope : decoder.ropes) {
    if (values.size() != rope.rotated / 2 ||
        std::any_of(values.begin(), values.end(), [](float v) { return !(v > 0); }))
      throw ModelError(checkpoint.path().string(),
                       std::string("tensor '") + kRopeFactors +
                           "' does not hold a factor above 0 for each pair of a head",
                       "");
    rope.scaling.frequency_factors.assign(values.begin(), values.end());
  }
}

}  // namespace mulciber
