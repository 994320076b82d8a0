#include "models/config.h"

#include <cmath>
#include <utility>

#include "mulciber/error.h"

namespace mulciber {
namespace {

struct ActivationName {
  const char* name;
  Activation activation;
};

// Names as in transformers/activations.py.
constexpr ActivationName kActivations[] = {
    {"relu", Activation::kRelu},          {"gelu", Activation::kGelu},
    {"gelu_python", Activation::kGelu},   {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"silu", Activation::kSilu},          {"swish", Activation::kSilu},
    {"tanh", Activation::kTanh},          {"linear", Activation::kNone},
};

std::string text_of(const Json& value) {
  return value.is_structured() ? value.type_name() : printable(value.dump());
}

std::optional<std::int64_t> integer_value(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= INT64_MAX ? std::optional<std::int64_t>(number) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

std::optional<std::int32_t> narrow(std::optional<std::int64_t> value) {
  return value ? std::optional<std::int32_t>(static_cast<std::int32_t>(*value)) : std::nullopt;
}

}  // namespace

ConfigReader::ConfigReader(const Json& object, std::string where, std::string remedy)
    : object_(object), where_(std::move(where)), remedy_(std::move(remedy)) {
  if (!object.is_object()) throw ModelError(where_, "is not a JSON object", "download it again");
}

void ConfigReader::fail(const std::string& key, const std::string& problem) const {
  throw ModelError(where_, "'" + key + "' " + problem, remedy_);
}

const Json* ConfigReader::find(const char* key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

ConfigReader ConfigReader::object(const char* key) const {
  const Json& found = value(key);
  if (!found.is_object()) fail(key, "is " + text_of(found) + "; an object is expected");
  return {found, where_, remedy_};
}

const Json& ConfigReader::list(const char* key) const {
  const Json& found = value(key);
  if (!found.is_array()) fail(key, "is " + text_of(found) + "; a list is expected");
  return found;
}

bool ConfigReader::has(const char* key) const { return find(key) != nullptr; }

const Json& ConfigReader::value(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr) fail(key, "is missing");
  return *found;
}

std::int64_t ConfigReader::integer(const char* key, std::int64_t least, std::int64_t most) const {
  const Json& found = value(key);
  const auto number = integer_value(found);
  if (!number || *number < least || *number > most)
    fail(key, "is " + text_of(found) + "; an integer from " + std::to_string(least) + " to " +
                  std::to_string(most) + " is expected");
  return *number;
}

std::int64_t ConfigReader::integer_or(const char* key, std::int64_t fallback, std::int64_t least,
                                      std::int64_t most) const {
  return has(key) ? integer(key, least, most) : fallback;
}

std::optional<std::int64_t> ConfigReader::optional_integer(const char* key, std::int64_t least,
                                                           std::int64_t most) const {
  return has(key) ? std::optional(integer(key, least, most)) : std::nullopt;
}

double ConfigReader::number_or(const char* key, double fallback, double least, double most) const {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  const double number = found->is_number() ? found->get<double>() : NAN;
  if (!(number >= least && number <= most))
    fail(key, "is " + text_of(*found) + "; a number from " + Json(least).dump() + " to " +
                  Json(most).dump() + " is expected");
  return number;
}

bool ConfigReader::boolean_or(const char* key, bool fallback) const {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) fail(key, "is " + text_of(*found) + "; true or false is expected");
  return found->get<bool>();
}

std::string ConfigReader::text(const char* key) const {
  const Json& found = value(key);
  if (!found.is_string()) fail(key, "is " + text_of(found) + "; text is expected");
  return found.get<std::string>();
}

std::string ConfigReader::text_or(const char* key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

Activation ConfigReader::activation(const char* key) const {
  const std::string name = text(key);
  std::string known;
  for (const ActivationName& row : kActivations) {
    if (name == row.name) return row.activation;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  fail(key, "is '" + printable(name) + "'; known activations are " + known);
}

EarlyStopping ConfigReader::early_stopping(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr) return EarlyStopping::kHeuristic;
  if (found->is_boolean())
    return found->get<bool>() ? EarlyStopping::kEarly : EarlyStopping::kHeuristic;
  if (*found == "never") return EarlyStopping::kNever;
  fail(key, "is " + text_of(*found) + "; true, false or \"never\" is expected");
}

std::int32_t ConfigReader::id(const char* key, const Json& value, std::int64_t vocab_size) const {
  const auto number = integer_value(value);
  if (!number || *number < 0 || *number >= vocab_size)
    fail(key, "names the token id " + text_of(value) + ", outside the vocabulary of " +
                  std::to_string(vocab_size));
  return static_cast<std::int32_t>(*number);
}

std::vector<std::int32_t> ConfigReader::ids(const char* key, std::int64_t vocab_size) const {
  std::vector<std::int32_t> result;
  if (const Json* found = find(key)) {
    if (!found->is_array()) return {id(key, *found, vocab_size)};
    for (const Json& entry : *found) result.push_back(id(key, entry, vocab_size));
  }
  return result;
}

std::vector<std::vector<std::int32_t>> ConfigReader::id_lists(const char* key,
                                                              std::int64_t vocab_size) const {
  std::vector<std::vector<std::int32_t>> result;
  const Json* found = find(key);
  if (found == nullptr) return result;
  if (!found->is_array())
    fail(key, "is " + text_of(*found) + "; a list of lists of ids is expected");
  for (const Json& list : *found) {
    if (!list.is_array() || list.empty())
      fail(key, "holds " + text_of(list) + "; a list of ids is expected");
    auto& row = result.emplace_back();
    for (const Json& entry : list) row.push_back(id(key, entry, vocab_size));
  }
  return result;
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
  result.early_stopping = reader("early_stopping").early_stopping("early_stopping");
  result.renormalize_logits = reader("renormalize_logits").boolean_or("renormalize_logits", false);
  result.do_sample = reader("do_sample").boolean_or("do_sample", false);
  result.temperature = reader("temperature").number_or("temperature", 1.0, 0, 1e6);
  result.top_k = count("top_k", 50, kLargestVocab);
  result.top_p = reader("top_p").number_or("top_p", 1.0, 0, 1);
  result.min_p = reader("min_p").number_or("min_p", 0.0, 0, 1);
  result.typical_p = reader("typical_p").number_or("typical_p", 1.0, 0, 1);
  result.repetition_penalty =
      reader("repetition_penalty").number_or("repetition_penalty", 1.0, 0, 1e6);
  result.penalty_last_n = static_cast<std::int32_t>(
      reader("penalty_last_n").integer_or("penalty_last_n", -1, -1, kMostTokens));
  result.no_repeat_ngram_size = count("no_repeat_ngram_size", 0, 1024);
  return result;
}

namespace {

/// Calls `read` with readers for a checkpoint's two configuration files.
template <typename Read>
auto with_readers(const Checkpoint& checkpoint, Read&& read) {
  const ConfigReader config(checkpoint.config(), (checkpoint.folder() / "config.json").string());
  if (checkpoint.generation_config() == nullptr) return read(config, nullptr);
  const ConfigReader generation(*checkpoint.generation_config(),
                                (checkpoint.folder() / "generation_config.json").string());
  return read(config, &generation);
}

}  // namespace

GenerationConfig read_generation_config(const Checkpoint& checkpoint, std::int64_t vocab_size) {
  return with_readers(checkpoint, [&](const ConfigReader& config, const ConfigReader* generation) {
    return read_generation_config(config, generation, vocab_size);
  });
}

MarianConfig read_marian_config(const Checkpoint& checkpoint) {
  return with_readers(checkpoint, [](const ConfigReader& config, const ConfigReader* generation) {
    return read_marian_config(config, generation);
  });
}

MarianConfig read_marian_config(const ConfigReader& config, const ConfigReader* generation) {
  if (const std::string type = config.text("model_type"); type != "marian")
    config.fail("model_type", "is '" + printable(type) + "', not 'marian'");
  const auto positive = [&](const char* key, std::int64_t most) {
    return static_cast<std::uint32_t>(config.integer(key, 1, most));
  };
  MarianConfig result;
  result.d_model = positive("d_model", kWidest);
  result.encoder_layers = positive("encoder_layers", kMostLayers);
  result.decoder_layers = positive("decoder_layers", kMostLayers);
  result.encoder_heads = positive("encoder_attention_heads", kMostHeads);
  result.decoder_heads = positive("decoder_attention_heads", kMostHeads);
  for (const auto& [key, heads] : {std::pair("encoder_attention_heads", result.encoder_heads),
                                   std::pair("decoder_attention_heads", result.decoder_heads)})
    if (result.d_model % heads != 0)
      config.fail(key, "is " + std::to_string(heads) + ", which does not divide d_model, " +
                           std::to_string(result.d_model));
  result.encoder_ffn = positive("encoder_ffn_dim", kWidest);
  result.decoder_ffn = positive("decoder_ffn_dim", kWidest);
  result.source_vocab = positive("vocab_size", kLargestVocab);
  result.target_vocab = static_cast<std::uint32_t>(
      config.integer_or("decoder_vocab_size", result.source_vocab, 1, kLargestVocab));
  result.max_positions = positive("max_position_embeddings", kMostPositions);
  result.activation = config.activation("activation_function");
  result.scale_embedding = config.boolean_or("scale_embedding", false);
  result.shared_embeddings = config.boolean_or("share_encoder_decoder_embeddings", true);
  result.tied_output = config.boolean_or("tie_word_embeddings", true);
  result.normalize_before = config.boolean_or("normalize_before", false);
  result.normalize_embedding = config.boolean_or("normalize_embedding", false);
  // A pre-norm stack leaves its sum unnormalized, so it needs a closing norm unless the file says
  // otherwise.
  result.final_norm = config.boolean_or("add_final_layer_norm", result.normalize_before);
  result.static_positions = config.boolean_or("static_position_embeddings", true);
  result.norm_epsilon = config.number_or("layer_norm_eps", 1e-5, 0, 1);
  if (result.shared_embeddings && result.source_vocab != result.target_vocab)
    config.fail("decoder_vocab_size",
                "is " + std::to_string(result.target_vocab) + ", but one embedding table of " +
                    std::to_string(result.source_vocab) + " rows is shared with the encoder");

  result.generation = read_generation_config(config, generation, result.target_vocab);
  GenerationConfig& ids = result.generation;
  if (ids.eos.empty()) config.fail("eos_token_id", "is missing");
  if (!ids.pad) config.fail("pad_token_id", "is missing");
  // Marian starts its decoder with the padding token.
  if (!ids.decoder_start) ids.decoder_start = ids.pad;
  return result;
}

}  // namespace mulciber
