#include "models/sentence_config.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoints/config_reader.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr const char* kRemedy = "the vectors would be others than those of sentence-transformers";

/// The last part of a dotted class name.
std::string last_part(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

/// The one mode that a Pooling module's configuration switches on.
Pooling read_pooling(const std::filesystem::path& path) {
  const Json object = read_json(path);
  const ConfigReader config(object, path.string(), kRemedy);
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
  config.fail("pooling_mode", "is '" + printable(mode) + "'; mean and cls are supported");
}

void read_modules(const std::filesystem::path& folder, SentenceConfig& sentence) {
  const std::filesystem::path path = folder / "modules.json";
  if (!std::filesystem::exists(path)) return;
  const Json modules = read_json(path);
  const auto refuse = [&](const std::string& problem) {
    throw ModelError(path.string(), problem, kRemedy);
  };
  if (!modules.is_array()) refuse("is not a list of modules");
  for (const Json& module : modules) {
    const ConfigReader reader(module, path.string(), kRemedy);
    const std::string type = last_part(reader.text("type")), where = reader.text_or("path", "");
    if (where.find("..") != std::string::npos || where.starts_with('/'))
      refuse(fmt::format("names a module outside its folder: '{}'", printable(where)));
    if (type == "Transformer" && !where.empty())
      refuse(fmt::format("has its model in '{}', not beside it", printable(where)));
    if (type == "Pooling") {
      sentence.pooling = read_pooling(folder / where / "config.json");
    } else if (type == "Normalize") {
      sentence.normalize = true;
    } else if (type != "Transformer") {
      refuse(fmt::format("has a module '{}'; Transformer, Pooling and Normalize are supported",
                         printable(type)));
    }
  }
}

void read_prompts(const std::filesystem::path& folder, SentenceConfig& sentence) {
  const std::filesystem::path path = folder / "config_sentence_transformers.json";
  if (!std::filesystem::exists(path)) return;
  const Json object = read_json(path);
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

}  // namespace

SentenceConfig read_sentence_config(const Checkpoint& checkpoint) {
  SentenceConfig sentence;
  if (!checkpoint.is_folder()) return sentence;
  const std::filesystem::path& folder = checkpoint.folder();
  read_modules(folder, sentence);
  read_prompts(folder, sentence);
  const std::filesystem::path lengths = folder / "sentence_bert_config.json";
  if (std::filesystem::exists(lengths)) {
    const Json object = read_json(lengths);
    const ConfigReader config(object, lengths.string(), kRemedy);
    if (const auto most = config.optional_integer("max_seq_length", 1, kMostTokens))
      sentence.max_tokens = static_cast<uint32_t>(*most);
  }
  return sentence;
}

}  // namespace mulciber
