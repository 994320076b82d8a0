#include "checkpoints/checkpoint.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoints/scaled_matrix.h"
#include "mulciber/error.h"

namespace mulciber {
namespace fs = std::filesystem;
namespace {

std::shared_ptr<const Json> read_object(const ModelFile& file) {
  // A configuration is a few kilobytes; 16 MiB leaves room for label tables.
  Json json = read_json(file, {.bytes = std::size_t{16} << 20});
  if (!json.is_object())
    throw ModelError(file.path().string(), "is not a JSON object", "download it again");
  return std::make_shared<const Json>(std::move(json));
}

/// A shard is a plain file name. A name with a folder in it could lead outside of the checkpoint.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

std::string first_bytes(const ModelFile& file) {
  const std::size_t count = std::min<std::size_t>(file.size(), 4);
  file.bytes()->fetch_first(count);
  return {reinterpret_cast<const char*>(file.bytes()->all().data()), count};
}

/// The name of part `number` (from 0) of a GGUF file split into `count`: base-00001-of-00003.gguf.
std::string part_name(const std::string& name, std::size_t number, std::size_t count) {
  const auto digits = [](std::size_t n) {
    std::string text = std::to_string(n);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  const std::string ending = "-of-" + digits(count) + ".gguf";
  if (!name.ends_with(ending) || name.size() < ending.size() + 6) return {};
  return name.substr(0, name.size() - ending.size() - 5) + digits(number + 1) + ending;
}

}  // namespace

Checkpoint::Checkpoint(const fs::path& path, Contents contents) : path_(path), folder_(path) {
  std::error_code ignored;
  is_folder_ = fs::is_directory(path, ignored);
  if (is_folder_) {
    open_folder(contents);
    return;
  }
  folder_ = path.parent_path();
  open_file();
}

Checkpoint::Checkpoint(std::vector<LentFile> files, const std::string& name) : path_(name) {
  if (files.empty())
    throw ModelError(name, "has no files", "list its files: config.json, model.safetensors, ...");
  const fs::path first = files.front().name;
  sources_ = ModelFiles(std::move(files));
  is_folder_ = sources_.exists("config.json") || sources_.exists("model.safetensors") ||
               sources_.exists("model.safetensors.index.json");
  if (is_folder_) {
    open_folder(Contents::kModel);
    return;
  }
  path_ = first;
  folder_ = path_.parent_path();
  open_file();
}

void Checkpoint::open_file() {
  ModelFile file = sources_.open(path_);
  const std::string start = first_bytes(file);
  // A file too short for magic bytes is known by its name.
  if (start == "GGUF" || (start.size() < 4 && path_.extension() == ".gguf")) {
    open_gguf(std::move(file));
    return;
  }
  // A PyTorch checkpoint is a zip archive, or a bare pickle in the oldest files.
  if (start == "PK\x03\x04" || start.starts_with("\x80\x02"))
    throw ModelError(path_.string(), "is a PyTorch checkpoint, not a safetensors file",
                     "look for a revision with model.safetensors");
  files_.push_back(std::make_unique<SafetensorsFile>(std::move(file)));
  list_tensors();
  find_scaled_matrices();
}

void Checkpoint::open_folder(Contents contents) {
  const auto is_there = [&](const char* name) { return sources_.exists(folder_ / name); };
  const auto open = [&](const char* name) { return sources_.open(folder_ / name); };
  if (is_there("config.json")) config_ = read_object(open("config.json"));
  if (contents == Contents::kText) return;
  if (is_there("generation_config.json"))
    generation_config_ = read_object(open("generation_config.json"));
  if (is_there("model.safetensors")) {
    files_.push_back(std::make_unique<SafetensorsFile>(open("model.safetensors")));
    list_tensors();
  } else if (is_there("model.safetensors.index.json")) {
    open_shards(folder_ / "model.safetensors.index.json");
  } else if (is_there("pytorch_model.bin") || is_there("pytorch_model.bin.index.json")) {
    throw ModelError(path_.string(), "holds weights only as pytorch_model.bin",
                     "look for a revision with model.safetensors, or save it again with "
                     "save_pretrained(safe_serialization=True)");
  } else {
    throw ModelError(path_.string(),
                     "has neither model.safetensors nor model.safetensors.index.json",
                     "point to a Hugging Face model folder or a .safetensors file");
  }
  find_scaled_matrices();
}

void Checkpoint::find_scaled_matrices() {
  // An unknown quantization configuration is refused when the model is read, not when the
  // checkpoint is only inspected.
  QuantizationConfig config;
  if (config_ && config_->contains("quantization_config")) {
    try {
      config = read_quantization(*config_, (folder_ / "config.json").string());
    } catch (const ModelError&) {
      return;
    }
  }
  scaled_matrices_ = scaled_matrices(tensors_, config, path_.string());
}

void Checkpoint::list_tensors() {
  for (const auto& file : files_)
    for (const CheckpointTensor& tensor : file->tensors()) tensors_.push_back(&tensor);
  for (const auto& part : gguf_files_)
    for (const CheckpointTensor& tensor : part->tensors()) tensors_.push_back(&tensor);
  std::sort(tensors_.begin(), tensors_.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
}

void Checkpoint::open_shards(const fs::path& index) {
  const Json json = read_json(sources_.open(index));
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object())
    throw ModelError(index.string(), "has no 'weight_map' object", "download it again");
  std::map<std::string, const SafetensorsFile*> shards;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
      throw ModelError(index.string(),
                       "puts tensor '" + printable(name) + "' in " +
                           printable(file.is_string() ? file.get<std::string>() : file.dump()) +
                           ", which is not a file name in this folder",
                       "the index is malformed: download it again");
    const auto& shard_name = file.get_ref<const std::string&>();
    const SafetensorsFile*& shard = shards[shard_name];
    if (shard == nullptr) {
      files_.push_back(std::make_unique<SafetensorsFile>(sources_.open(folder_ / shard_name)));
      shard = files_.back().get();
    }
    const CheckpointTensor* tensor = shard->find(name);
    if (tensor == nullptr)
      throw ModelError(index.string(),
                       "puts tensor '" + printable(name) + "' in " + printable(shard_name) +
                           ", which does not hold it",
                       "index and shards are from different revisions: download both again");
    tensors_.push_back(tensor);  // JSON objects iterate in the order of their names
  }
}

void Checkpoint::open_gguf(ModelFile file) {
  auto given = std::make_unique<GgufFile>(std::move(file));
  std::size_t parts = 1;
  if (const GgufValue* count = given->find_value("split.count"))
    if (count->is_integer() && count->integer() > 1)
      parts = static_cast<std::size_t>(count->integer());
  if (parts == 1) {
    gguf_files_.push_back(std::move(given));
    return list_tensors();
  }
  const std::string own_name = path_.filename().string();
  for (std::size_t i = 0; i < parts; ++i) {
    const std::string name = part_name(own_name, i, parts);
    if (name.empty())
      throw ModelError(path_.string(),
                       "is part of a file split into " + std::to_string(parts) +
                           ", but its name does not end in -NNNNN-of-NNNNN.gguf",
                       "give the parts the names they had where they came from");
    gguf_files_.push_back(name == own_name
                              ? std::move(given)
                              : std::make_unique<GgufFile>(sources_.open(folder_ / name)));
    const GgufValue* number = gguf_files_.back()->find_value("split.no");
    if (number == nullptr || !number->is_integer() ||
        number->integer() != static_cast<std::int64_t>(i))
      throw ModelError((folder_ / name).string(),
                       "is not part " + std::to_string(i + 1) + " of its file, as its name says",
                       "download all parts from one revision");
  }
  list_tensors();
  for (std::size_t i = 1; i < tensors_.size(); ++i)
    if (tensors_[i]->name == tensors_[i - 1]->name)
      throw ModelError(path_.string(),
                       "holds tensor '" + printable(tensors_[i]->name) + "' in two parts",
                       "download all parts from one revision");
}

const Json& Checkpoint::config() const {
  if (!config_)
    throw ModelError(path_.string(), "has no config.json",
                     "point to a whole Hugging Face model folder");
  return *config_;
}

const Json* Checkpoint::tokenizer_config() const {
  const auto& found = tokenizer_config_.get([&]() -> std::shared_ptr<const Json> {
    const fs::path file = folder_ / "tokenizer_config.json";
    if (!is_folder_ || !sources_.exists(file)) return nullptr;
    return read_object(sources_.open(file));
  });
  return found.get();
}

std::string Checkpoint::model_type() const {
  if (!config_) return {};
  const auto it = config_->find("model_type");
  return it != config_->end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::string Checkpoint::model_class() const {
  if (!config_) return {};
  const auto it = config_->find("architectures");
  const bool named =
      it != config_->end() && it->is_array() && !it->empty() && it->front().is_string();
  return named ? it->front().get<std::string>() : std::string();
}

const CheckpointTensor* Checkpoint::find(std::string_view name) const {
  const auto scaled = std::ranges::lower_bound(
      scaled_matrices_, name, {}, [](const auto& t) -> std::string_view { return t->name; });
  if (scaled != scaled_matrices_.end() && (*scaled)->name == name) return scaled->get();
  const auto it = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const auto* t, std::string_view n) { return t->name < n; });
  return it != tensors_.end() && (*it)->name == name ? *it : nullptr;
}

const CheckpointTensor& Checkpoint::at(std::string_view name) const {
  if (const CheckpointTensor* tensor = find(name)) return *tensor;
  throw ModelError(
      path_.string(), "has no tensor '" + std::string(name) + "'",
      "the weights do not fit the architecture in config.json: download both from one revision");
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const CheckpointTensor* tensor : tensors_) names.push_back(tensor->name);
  return names;
}

std::uint64_t Checkpoint::total_bytes() const {
  std::uint64_t total = 0;
  for (const CheckpointTensor* tensor : tensors_) total += tensor->bytes.size();
  return total;
}

}  // namespace mulciber
