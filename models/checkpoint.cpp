#include "models/checkpoint.h"

#include <algorithm>
#include <map>

#include "mulciber/error.h"

namespace mulciber {
namespace fs = std::filesystem;
namespace {

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Json read_object(const fs::path& path) {
  // A configuration is a few kilobytes; 16 MiB leaves room for label tables.
  Json json = read_json(path, {.bytes = std::size_t{16} << 20});
  if (!json.is_object())
    throw ModelError(path.string(), "is not a JSON object", "download it again");
  return json;
}

/// A shard is a plain file name. Anything with a folder in it could reach outside the checkpoint.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

/// Says what a file of another well-known kind is, instead of how it fails to be a safetensors
/// file.
void refuse_other_kinds(const fs::path& path) {
  const MappedFile file(path);
  const std::string_view start(reinterpret_cast<const char*>(file.bytes().data()),
                               std::min<std::size_t>(file.bytes().size(), 4));
  if (start == "GGUF")
    throw ModelError(path.string(), "is a GGUF file, which this build cannot read yet",
                     "use the model's Hugging Face folder with its .safetensors files");
  // A PyTorch checkpoint is a zip archive, or a bare pickle in the oldest files.
  if (start == "PK\x03\x04" || start.starts_with("\x80\x02"))
    throw ModelError(path.string(), "is a PyTorch checkpoint, not a safetensors file",
                     "look for a revision with model.safetensors");
}

}  // namespace

Checkpoint::Checkpoint(const fs::path& path) : path_(path), folder_(path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    folder_ = path.parent_path();
    refuse_other_kinds(path);
    files_.push_back(std::make_unique<SafetensorsFile>(path));
  } else {
    if (is_there(path / "config.json")) config_ = read_object(path / "config.json");
    if (is_there(path / "generation_config.json"))
      generation_config_ = read_object(path / "generation_config.json");
    if (is_there(path / "model.safetensors")) {
      files_.push_back(std::make_unique<SafetensorsFile>(path / "model.safetensors"));
    } else if (is_there(path / "model.safetensors.index.json")) {
      open_shards(path / "model.safetensors.index.json");
      return;
    } else if (is_there(path / "pytorch_model.bin") ||
               is_there(path / "pytorch_model.bin.index.json")) {
      throw ModelError(path.string(), "holds weights only as pytorch_model.bin",
                       "look for a revision with model.safetensors, or save it again with "
                       "save_pretrained(safe_serialization=True)");
    } else {
      throw ModelError(path.string(),
                       "has neither model.safetensors nor model.safetensors.index.json",
                       "point to a Hugging Face model folder or a .safetensors file");
    }
  }
  for (const CheckpointTensor& tensor : files_[0]->tensors()) tensors_.push_back(&tensor);
  std::sort(tensors_.begin(), tensors_.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
}

void Checkpoint::open_shards(const fs::path& index) {
  const Json json = read_json(index);
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
      files_.push_back(std::make_unique<SafetensorsFile>(folder_ / shard_name));
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

const Json& Checkpoint::config() const {
  if (!config_)
    throw ModelError(path_.string(), "has no config.json",
                     "point to a whole Hugging Face model folder");
  return *config_;
}

std::string Checkpoint::model_type() const {
  if (!config_) return {};
  const auto it = config_->find("model_type");
  return it != config_->end() && it->is_string() ? it->get<std::string>() : std::string();
}

const CheckpointTensor* Checkpoint::find(std::string_view name) const {
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
