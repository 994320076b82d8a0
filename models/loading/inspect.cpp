#include "models/loading/inspect.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr std::int64_t kAny = std::int64_t{1} << 40;

/// Checks a rule of every Transformer, known or not: heads divide the width, unless the file sets
/// the head size.
void check_heads(const ConfigReader& config) {
  const char* width = config.has("hidden_size") ? "hidden_size"
                      : config.has("d_model")   ? "d_model"
                                                : "n_embd";
  if (!config.has(width) || config.has("head_dim") || config.has("d_kv")) return;
  const std::int64_t size = config.integer(width, 1, kAny);
  for (const char* key :
       {"num_attention_heads", "encoder_attention_heads", "decoder_attention_heads", "n_head"}) {
    if (!config.has(key)) continue;
    const std::int64_t heads = config.integer(key, 1, kAny);
    if (size % heads != 0)
      config.fail(key, "is " + std::to_string(heads) + ", which does not divide " + width + ", " +
                           std::to_string(size));
  }
  if (const auto kv = config.optional_integer("num_key_value_heads", 1, kAny);
      kv && config.has("num_attention_heads"))
    if (config.integer("num_attention_heads", 1, kAny) % *kv != 0)
      config.fail("num_key_value_heads",
                  "is " + std::to_string(*kv) + ", which does not divide num_attention_heads");
}

Json describe_architecture(const Checkpoint& checkpoint) {
  const ConfigReader config(checkpoint.config(), (checkpoint.folder() / "config.json").string());
  Json result = {{"model_type", config.text_or("model_type", "")}};
  if (const std::string name = checkpoint.model_class(); !name.empty()) result["class"] = name;
  check_heads(config);
  return result;
}

Json describe_tokenizer(const Tokenizer& tokenizer) {
  Json special = Json::object();
  const SpecialIds& ids = tokenizer.special();
  for (const auto& [role, id] :
       {std::pair("bos", ids.bos), std::pair("eos", ids.eos), std::pair("pad", ids.pad),
        std::pair("unk", ids.unk), std::pair("cls", ids.cls), std::pair("sep", ids.sep),
        std::pair("mask", ids.mask)})
    if (id) special[role] = {{"id", *id}, {"piece", std::string(tokenizer.piece(*id))}};
  return {{"kind", tokenizer.kind()}, {"vocab_size", tokenizer.vocab_size()}, {"special", special}};
}

bool has_tokenizer(const Checkpoint& checkpoint) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "spiece.model", "source.spm"})
    if (checkpoint.files().exists(checkpoint.folder() / name)) return true;
  return false;
}

Json describe_gguf(const GgufFile& file) {
  Json metadata = Json::object();
  for (const auto& [key, value] : file.metadata()) metadata[printable(key)] = value.shown();
  return metadata;
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string shown(const Json& value) {
  return value.is_string() ? printable(value.get_ref<const std::string&>())
                           : printable(value.dump());
}

bool folder_format(const Json& report) { return report.at("format") == "Hugging Face folder"; }

void append_facts(std::string& out, const char* title, const Json& facts) {
  out += title;
  out += "\n";
  for (const auto& [key, value] : facts.items())
    out += "  " + padded(printable(key), 34) + " " + shown(value) + "\n";
}

}  // namespace

std::string format_of(const Checkpoint& checkpoint) {
  if (checkpoint.is_folder()) return "Hugging Face folder";
  if (const GgufFile* gguf = checkpoint.gguf())
    return "GGUF file, version " + std::to_string(gguf->version());
  return "safetensors file";
}

Json inspect(const OpenModel& model) {
  const Checkpoint& checkpoint = model.checkpoint();
  const std::filesystem::path& path = checkpoint.path();
  const bool folder = checkpoint.is_folder();
  Json report = {{"path", path.string()},
                 {"format", format_of(checkpoint)},
                 {"files", checkpoint.file_count()},
                 {"notes", Json::array()}};
  if (checkpoint.has_config()) {
    report["architecture"] = describe_architecture(checkpoint);
    report["hyperparameters"] = checkpoint.config();
  } else if (folder) {
    report["notes"].push_back("there is no config.json: the architecture is unknown");
  }
  if (const GgufFile* gguf = checkpoint.gguf()) {
    report["hyperparameters"] = describe_gguf(*gguf);
    if (const GgufValue* name = gguf->find_value("general.architecture"); name && name->is_text())
      report["architecture"] = {{"model_type", printable(name->text())}};
    else
      report["notes"].push_back("there is no general.architecture: the architecture is unknown");
  }
  if (model.find_family()) {
    const CapabilitySet capabilities = model.capabilities();  // throws for models that cannot run
    report["capabilities"] = Json::array();
    for (const CapabilityRow& row : capability_rows())
      if (capabilities.has(row.capability)) report["capabilities"].push_back(row.name);
  }
  if (const Json* generation = checkpoint.generation_config()) report["generation"] = *generation;

  Json tensors = Json::array();
  std::map<std::string, std::uint64_t> types;
  std::uint64_t parameters = 0;
  for (const CheckpointTensor* tensor : checkpoint.tensors()) {
    tensors.push_back({{"name", tensor->name},
                       {"type", name_of(tensor->type)},
                       {"shape", tensor->shape},
                       {"bytes", tensor->bytes.size()}});
    ++types[name_of(tensor->type)];
    parameters += tensor->elements();
  }
  report["tensors"] = std::move(tensors);
  report["totals"] = {{"tensors", checkpoint.tensors().size()},
                      {"parameters", parameters},
                      {"bytes", checkpoint.total_bytes()},
                      {"types", types}};

  const bool in_gguf = checkpoint.gguf() && checkpoint.gguf()->find_value("tokenizer.ggml.model");
  if (in_gguf || (folder && has_tokenizer(checkpoint))) {
    const Tokenizer& tokenizer = *model.tokenizer();
    report["tokenizer"] = describe_tokenizer(tokenizer);
    const Json& config = checkpoint.has_config() ? checkpoint.config() : report;
    const auto vocab = config.find("vocab_size");
    if (vocab != config.end() && vocab->is_number_unsigned() &&
        vocab->get<std::uint64_t>() < static_cast<std::uint64_t>(tokenizer.vocab_size()))
      report["notes"].push_back("the tokenizer has " + std::to_string(tokenizer.vocab_size()) +
                                " ids, the model's vocabulary only " + vocab->dump());
  } else if (folder) {
    report["notes"].push_back("there is no tokenizer");
  }
  return report;
}

std::string inspection_text(const Json& report, bool all_tensors) {
  std::string out = printable(report.at("path").get<std::string>()) + ": " +
                    report.at("format").get<std::string>() + ", weights in " +
                    grouped(report.at("files").get<std::uint64_t>()) +
                    (report.at("files") == 1 ? " file\n" : " files\n");
  if (report.contains("architecture")) {
    const Json& architecture = report.at("architecture");
    const std::string type = printable(architecture.at("model_type").get<std::string>());
    out += "architecture  " + (type.empty() ? "not named" : type);
    if (architecture.contains("class")) out += " (" + shown(architecture.at("class")) + ")";
    out += "\n";
  }
  if (report.contains("capabilities")) {
    out += "can          ";
    std::string before = " ";
    for (const Json& name : report.at("capabilities"))
      out += std::exchange(before, ", ") + name.get<std::string>();
    out += "\n";
  }
  const Json& totals = report.at("totals");
  out += "parameters    " + grouped(totals.at("parameters").get<std::uint64_t>()) + " in " +
         grouped(totals.at("tensors").get<std::uint64_t>()) + " tensors, " +
         grouped(totals.at("bytes").get<std::uint64_t>()) + " bytes (";
  std::string separator;
  for (const auto& [type, count] : totals.at("types").items()) {
    out += separator + grouped(count.get<std::uint64_t>()) + " " + type;
    separator = ", ";
  }
  out += ")\n";
  if (report.contains("tokenizer")) {
    const Json& tokenizer = report.at("tokenizer");
    out += "tokenizer     " + tokenizer.at("kind").get<std::string>() + ", " +
           grouped(tokenizer.at("vocab_size").get<std::uint64_t>()) + " ids";
    for (const auto& [role, token] : tokenizer.at("special").items())
      out += ", " + role + " " + token.at("id").dump() + " '" + shown(token.at("piece")) + "'";
    out += "\n";
  }
  for (const Json& note : report.at("notes"))
    out += "note          " + note.get<std::string>() + "\n";
  if (report.contains("hyperparameters"))
    append_facts(out, folder_format(report) ? "config.json" : "metadata",
                 report.at("hyperparameters"));
  if (report.contains("generation"))
    append_facts(out, "generation_config.json", report.at("generation"));
  if (!all_tensors) return out;

  const Json& tensors = report.at("tensors");
  std::size_t name_width = 4, shape_width = 5;
  for (const Json& tensor : tensors) {
    name_width = std::max(name_width, shown(tensor.at("name")).size());
    shape_width = std::max(shape_width, tensor.at("shape").dump().size());
  }
  out += padded("tensor", name_width) + "  type     " + padded("shape", shape_width) + "  bytes\n";
  for (const Json& tensor : tensors)
    out += padded(shown(tensor.at("name")), name_width) + "  " +
           padded(tensor.at("type").get<std::string>(), 7) + "  " +
           padded(tensor.at("shape").dump(), shape_width) + "  " +
           grouped(tensor.at("bytes").get<std::uint64_t>()) + "\n";
  return out;
}

}  // namespace mulciber
