#include "models/encoding/sentence_config.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoints/config_reader.h"
#include "checkpoints/tensor_values.h"
#include "models/core/config.h"
#include "models/families/gguf_metadata.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr const char* kRemedy = "the vectors would be others than those of sentence-transformers";

/// The last part of a dotted class name.
std::string last_part(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

/// Reads the mode of a Pooling module, which must be one.
Pooling read_pooling(const ModelFile& file) {
  const Json object = read_json(file);
  const ConfigReader config(object, file.path().string(), kRemedy);
  std::string mode = config.text_or("pooling_mode", "");
  if (mode.empty()) {
    size_t modes = 0;
    for (const auto& [key, value] : object.items()) {
      constexpr std::string_view kPrefix = "pooling_mode_";
      if (!key.starts_with(kPrefix) || !value.is_boolean() || !value.get<bool>()) continue;
      mode = key.substr(kPrefix.size());
      ++modes;
    }
    if (modes > 1)
      config.fail("pooling_mode_" + mode, "is one of several, which are not supported");
  }
  if (!config.boolean_or("include_prompt", true))
    config.fail("include_prompt", "is false: leaving a prompt's tokens out is not supported");
  if (mode == "mean_tokens" || mode == "mean") return Pooling::kMean;
  if (mode == "cls_token" || mode == "cls") return Pooling::kFirst;
  if (mode == "lasttoken") return Pooling::kLast;
  if (mode == "max_tokens" || mode == "max") return Pooling::kMax;
  if (mode == "mean_sqrt_len_tokens") return Pooling::kMeanSqrtLength;
  if (mode == "weightedmean_tokens" || mode == "weightedmean") return Pooling::kWeightedMean;
  config.fail("pooling_mode", "is '" + printable(mode) +
                                  "'; cls, lasttoken, max, mean, mean_sqrt_len_tokens and "
                                  "weightedmean are known");
}

/// Reads a matrix or vector of a module's file as floats.
std::vector<float> read_values(const SafetensorsFile& file, const std::filesystem::path& path,
                               const char* name, const std::vector<uint64_t>& shape) {
  const CheckpointTensor* tensor = file.find(name);
  if (!tensor || tensor->shape != shape || !has_float_values(tensor->type))
    throw ModelError(path.string(),
                     fmt::format("has no {} of the shape that its config.json says", name),
                     kRemedy);
  return read_floats(*tensor, 0, tensor->elements());
}

DenseModule read_dense(const ModelFiles& files, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json", weights = folder / "model.safetensors";
  const Json object = read_json(files.open(path));
  const ConfigReader config(object, path.string(), kRemedy);
  DenseModule dense{.in = static_cast<uint32_t>(config.integer("in_features", 1, kWidest)),
                    .out = static_cast<uint32_t>(config.integer("out_features", 1, kWidest))};
  constexpr std::pair<const char*, Activation> kActivations[] = {{"Identity", Activation::kNone},
                                                                 {"Tanh", Activation::kTanh},
                                                                 {"ReLU", Activation::kRelu},
                                                                 {"GELU", Activation::kGelu},
                                                                 {"SiLU", Activation::kSilu}};
  const std::string name =
      last_part(config.text_or("activation_function", "torch.nn.modules.activation.Tanh"));
  const auto* const found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                         [&](const auto& known) { return name == known.first; });
  if (found == std::end(kActivations))
    config.fail("activation_function",
                "is '" + printable(name) + "'; Identity, Tanh, ReLU, GELU and SiLU are known");
  dense.activation = found->second;
  for (const char* key : {"module_input_name", "module_output_name"})
    if (config.text_or(key, "sentence_embedding") != "sentence_embedding")
      config.fail(key,
                  "is '" + printable(config.text_or(key, "")) + "'; vectors of texts are known");
  if (!files.exists(weights))
    throw ModelError(folder.string(), "has no model.safetensors (pytorch_model.bin is not read)",
                     "save the model anew with a recent sentence-transformers");
  const SafetensorsFile file(files.open(weights));
  dense.weight = read_values(file, weights, "linear.weight", {dense.out, dense.in});
  if (config.boolean_or("bias", true))
    dense.bias = read_values(file, weights, "linear.bias", {dense.out});
  return dense;
}

void read_modules(const Checkpoint& checkpoint, SentenceConfig& sentence) {
  const ModelFiles& files = checkpoint.files();
  const std::filesystem::path& folder = checkpoint.folder();
  const std::filesystem::path path = folder / "modules.json";
  if (!files.exists(path)) return;
  sentence.from_files = true;
  const Json modules = read_json(files.open(path));
  const auto refuse = [&](const std::string& problem) {
    throw ModelError(path.string(), problem, kRemedy);
  };
  if (!modules.is_array()) refuse("is not a list of modules");
  bool pooled = false;
  for (const Json& module : modules) {
    const ConfigReader reader(module, path.string(), kRemedy);
    const std::string type = last_part(reader.text("type")), where = reader.text_or("path", "");
    if (where.find("..") != std::string::npos || where.starts_with('/'))
      refuse(fmt::format("names a module outside its folder: '{}'", printable(where)));
    if (type == "Transformer" && !where.empty())
      refuse(fmt::format("has its model in '{}', not beside it", printable(where)));
    if (type == "Pooling") {
      sentence.pooling = read_pooling(files.open(folder / where / "config.json"));
      pooled = true;
    } else if (type == "Dense") {
      if (!pooled || sentence.normalize)
        refuse("has a Dense module that does not stand between Pooling and Normalize");
      sentence.dense.push_back(read_dense(files, folder / where));
    } else if (type == "Normalize") {
      sentence.normalize = true;
    } else if (type != "Transformer") {
      refuse(
          fmt::format("has a module '{}'; Transformer, Pooling, Dense and Normalize are supported",
                      printable(type)));
    }
  }
}

void read_prompts(const Checkpoint& checkpoint, SentenceConfig& sentence) {
  const std::filesystem::path path = checkpoint.folder() / "config_sentence_transformers.json";
  if (!checkpoint.files().exists(path)) return;
  const Json object = read_json(checkpoint.files().open(path));
  const ConfigReader config(object, path.string(), kRemedy);
  if (config.has("prompts")) {
    const ConfigReader prompts = config.object("prompts");
    for (const auto& [name, value] : config.value("prompts").items())
      sentence.prompts[name] = prompts.text_or(name.c_str(), "");
  }
  sentence.default_prompt = config.text_or("default_prompt_name", "");
  if (!sentence.default_prompt.empty() && !sentence.prompts.contains(sentence.default_prompt))
    config.fail("default_prompt_name", "names no prompt of `prompts`");
}

/// Reads the pooling type, the only setting in a GGUF file. Embeddings are normalized, as in other
/// programs that read such files.
void read_gguf_pooling(const Checkpoint& checkpoint, SentenceConfig& sentence) {
  const GgufMetadata metadata(checkpoint);
  sentence.normalize = true;
  const double type = metadata.number("pooling_type", 0);
  sentence.from_files = type != 0;
  if (type == 2 || type == 4) sentence.pooling = Pooling::kFirst;  // 4: a classifier's input
  if (type == 3) sentence.pooling = Pooling::kLast;
  if (type < 0 || type > 4)
    metadata.fail(metadata.full("pooling_type"), "is none of the known numbers 0 to 4");
}

}  // namespace

SentenceConfig read_sentence_config(const Checkpoint& checkpoint) {
  SentenceConfig sentence;
  if (checkpoint.gguf()) read_gguf_pooling(checkpoint, sentence);
  if (!checkpoint.is_folder()) return sentence;
  read_modules(checkpoint, sentence);
  read_prompts(checkpoint, sentence);
  const std::filesystem::path lengths = checkpoint.folder() / "sentence_bert_config.json";
  if (checkpoint.files().exists(lengths)) {
    const Json object = read_json(checkpoint.files().open(lengths));
    const ConfigReader config(object, lengths.string(), kRemedy);
    if (const auto most = config.optional_integer("max_seq_length", 1, kMostTokens))
      sentence.max_tokens = static_cast<uint32_t>(*most);
  }
  return sentence;
}

}  // namespace mulciber
