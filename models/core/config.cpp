#include "models/core/config.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "mulciber/error.h"

namespace mulciber {
namespace {

struct ActivationName {
  const char* name;
  Activation activation;
};

// Names of transformers/activations.py.
constexpr ActivationName kActivations[] = {
    {"relu", Activation::kRelu},          {"gelu", Activation::kGelu},
    {"gelu_python", Activation::kGelu},   {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"silu", Activation::kSilu},          {"swish", Activation::kSilu},
    {"tanh", Activation::kTanh},          {"quick_gelu", Activation::kQuickGelu},
    {"linear", Activation::kNone},
};

std::optional<std::int32_t> narrow(std::optional<std::int64_t> value) {
  return value ? std::optional<std::int32_t>(static_cast<std::int32_t>(*value)) : std::nullopt;
}

/// Returns kHeuristic when the key is absent.
EarlyStopping read_early_stopping(const ConfigReader& config, const char* key) {
  const Json* found = config.find(key);
  if (found == nullptr) return EarlyStopping::kHeuristic;
  if (found->is_boolean())
    return found->get<bool>() ? EarlyStopping::kEarly : EarlyStopping::kHeuristic;
  if (*found == "never") return EarlyStopping::kNever;
  config.fail(key, "is " + printable(found->dump()) + "; true, false or \"never\" is expected");
}

/// Reads sampling settings. Without do_sample, temperature and filters are checked but not used.
/// The defaults are those of transformers.
Sampling read_sampling(const std::function<const ConfigReader&(const char*)>& reader) {
  const auto number = [&](const char* key, double fallback, double most) {
    return static_cast<float>(reader(key).number_or(key, fallback, 0, most));
  };
  const auto positive = [&](const char* key, double most) {
    const float value = number(key, 1, most);
    return value > 0 ? value : 1;
  };
  Sampling drawn;
  drawn.temperature = number("temperature", 1, 1e6);
  drawn.top_k = static_cast<uint32_t>(reader("top_k").integer_or("top_k", 50, 0, kLargestVocab));
  drawn.top_p = positive("top_p", 1);
  drawn.min_p = number("min_p", 0, 1);
  drawn.typical_p = positive("typical_p", 1);
  Sampling sampling = reader("do_sample").boolean_or("do_sample", false) ? drawn : Sampling{};
  sampling.repetition_penalty = positive("repetition_penalty", 1e6);
  sampling.penalty_window = static_cast<uint32_t>(
      reader("penalty_last_n").integer_or("penalty_last_n", -1, -1, kMostTokens));  // -1: all
  return sampling;
}

}  // namespace

Activation read_activation(const ConfigReader& config, const char* key) {
  const std::string name = config.text(key);
  std::string known;
  for (const ActivationName& row : kActivations) {
    if (name == row.name) return row.activation;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  config.fail(key, "is '" + printable(name) + "'; known activations are " + known);
}

GenerationConfig read_generation_config(const ConfigReader& config, const ConfigReader* generation,
                                        std::int64_t vocab_size) {
  const auto reader = [&](const char* key) -> const ConfigReader& {
    return generation != nullptr && generation->has(key) ? *generation : config;
  };
  const auto single_id = [&](const char* key) -> std::optional<std::int32_t> {
    const auto ids = reader(key).ids(key, vocab_size);
    if (ids.size() > 1) reader(key).fail(key, "lists several ids; one is expected");
    return ids.empty() ? std::nullopt : std::optional(ids[0]);
  };
  const auto count = [&](const char* key, std::int32_t fallback, std::int64_t most) {
    return static_cast<std::int32_t>(reader(key).integer_or(key, fallback, 0, most));
  };

  GenerationConfig result;
  result.bos = single_id("bos_token_id");
  result.pad = single_id("pad_token_id");
  result.decoder_start = single_id("decoder_start_token_id");
  result.forced_bos = single_id("forced_bos_token_id");
  result.forced_eos = single_id("forced_eos_token_id");
  result.eos = reader("eos_token_id").ids("eos_token_id", vocab_size);
  result.bad_words_ids = reader("bad_words_ids").id_lists("bad_words_ids", vocab_size);
  result.max_length = narrow(reader("max_length").optional_integer("max_length", 1, kMostTokens));
  result.max_new_tokens =
      narrow(reader("max_new_tokens").optional_integer("max_new_tokens", 1, kMostTokens));
  result.min_length = count("min_length", 0, kMostTokens);
  result.num_beams =
      static_cast<std::int32_t>(reader("num_beams").integer_or("num_beams", 1, 1, 1024));
  result.length_penalty = reader("length_penalty").number_or("length_penalty", 1.0, -100, 100);
  result.early_stopping = read_early_stopping(reader("early_stopping"), "early_stopping");
  result.renormalize_logits = reader("renormalize_logits").boolean_or("renormalize_logits", false);
  result.sampling = read_sampling(reader);
  result.no_repeat_ngram_size = count("no_repeat_ngram_size", 0, 1024);
  return result;
}

ConfigReaders::ConfigReaders(const Checkpoint& checkpoint)
    : config(checkpoint.config(), (checkpoint.folder() / "config.json").string()) {
  if (checkpoint.generation_config() != nullptr)
    generation.emplace(*checkpoint.generation_config(),
                       (checkpoint.folder() / "generation_config.json").string());
}

GenerationConfig read_generation_config(const Checkpoint& checkpoint, std::int64_t vocab_size) {
  const ConfigReaders readers(checkpoint);
  return read_generation_config(readers.config, readers.generation_or_null(), vocab_size);
}

}  // namespace mulciber
