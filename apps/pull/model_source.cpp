#include "apps/pull/model_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCatalogue =
#include "pull/catalogue.json.inc"
    ;

constexpr const char* kForms =
    "give a URL, owner/name, owner/name:file, or a name of `mulciber pull --list`";

std::string text_of(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>()
                                                         : std::string();
}

std::uint64_t number_of(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_number_unsigned() ? object[key].get<std::uint64_t>()
                                                                  : 0;
}

/// A path from an untrusted source, which stays below its folder.
fs::path safe_path(const std::string& text) {
  fs::path path(text);
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) {
    return c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  const bool inside = !text.empty() && text.size() < 512 && path.is_relative() &&
                      !text.ends_with('/') &&
                      std::all_of(path.begin(), path.end(), [](const fs::path& part) {
                        return !part.empty() && part != "." && part != "..";
                      });
  if (!plain || !inside)
    throw ModelError("'" + printable(text) + "'", "is no name for a file in a model's folder",
                     kForms);
  return path;
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_repository_name(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == text.npos || slash == 0 || slash + 1 == text.size()) return false;
  const std::string_view owner = text.substr(0, slash), name = text.substr(slash + 1);
  const auto plain = [](std::string_view part) {
    return part[0] != '.' && std::all_of(part.begin(), part.end(), is_name_char);
  };
  return plain(owner) && plain(name);
}

/// The path of a URL: characters other than letters, digits and a few plain ones become %XX.
std::string url_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (is_name_char(c) || c == '/' || c == '~')
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

RemoteFile file_of_url(const std::string& url) {
  std::string_view rest = url;
  rest = rest.substr(0, rest.find_first_of("?#"));
  const std::size_t host = rest.find("://") + 3, slash = rest.rfind('/');
  if (slash == rest.npos || slash < host || slash + 1 == rest.size())
    throw ModelError("'" + printable(url) + "'", "names no file",
                     "give the address of a model's file");
  return {url, safe_path(std::string(rest.substr(slash + 1))).filename(), 0, {}};
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = [] {
    std::vector<CatalogueEntry> all;
    const Json document = parse_json(kCatalogue, "catalogue.json");
    for (const Json& model : document.at("models")) {
      all.push_back({.name = text_of(model, "name"),
                     .about = text_of(model, "about"),
                     .parameters = text_of(model, "parameters"),
                     .license = text_of(model, "license"),
                     .url = text_of(model, "url"),
                     .repository = text_of(model, "repository"),
                     .bytes = number_of(model, "bytes"),
                     .sha256 = text_of(model, "sha256")});
    }
    return all;
  }();
  return entries;
}

ModelSource find_source(const std::string& words) {
  if (words.starts_with("http://") || words.starts_with("https://"))
    return {file_of_url(words), {}};
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name != words) continue;
    if (!entry.repository.empty()) return {{}, Repository{entry.repository, {}}};
    RemoteFile file = file_of_url(entry.url);
    file.bytes = entry.bytes;
    file.sha256 = entry.sha256;
    return {std::move(file), {}};
  }
  const std::size_t colon = words.find(':');
  const std::string name = words.substr(0, colon);
  if (is_repository_name(name)) {
    const std::string file = colon == words.npos ? std::string() : words.substr(colon + 1);
    if (colon != words.npos) safe_path(file);
    return {{}, Repository{name, file}};
  }
  throw ModelError("'" + printable(words) + "'", "names no model", kForms);
}

std::string hub_endpoint() {
  const char* value = std::getenv("HF_ENDPOINT");
  std::string endpoint = value && *value ? value : "https://huggingface.co";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

std::string listing_url(const std::string& repository) {
  return hub_endpoint() + "/api/models/" + repository + "?blobs=true";
}

RemoteFile hub_file(const std::string& repository, const std::string& file) {
  return {hub_endpoint() + "/" + repository + "/resolve/main/" + url_path(file),
          fs::path(repository) / safe_path(file),
          0,
          {}};
}

std::vector<RemoteFile> files_of_repository(const std::string& repository,
                                            const std::string& listing) {
  const std::string where = repository + ": the hub's list of files";
  const Json json = parse_json(listing, where);
  if (!json.is_object() || !json.contains("siblings") || !json["siblings"].is_array())
    throw ModelError(where, "is not what it should be", "try a URL of the file itself");
  std::vector<RemoteFile> folder, ggufs;
  bool weights = false;
  for (const Json& sibling : json["siblings"]) {
    const std::string name = sibling.is_object() ? text_of(sibling, "rfilename") : std::string();
    // Files in folders are other formats of the same model.
    if (name.empty() || name.find('/') != name.npos) continue;
    const bool is_gguf = name.ends_with(".gguf"), is_weight = name.ends_with(".safetensors");
    const bool is_small = name.ends_with(".json") || name.ends_with(".jinja") ||
                          name.ends_with(".model") || name.ends_with(".spm") ||
                          name == "merges.txt" || name == "vocab.txt";
    if (!is_gguf && !is_weight && !is_small) continue;
    RemoteFile file = hub_file(repository, name);
    file.bytes = number_of(sibling, "size");
    if (sibling.contains("lfs") && sibling["lfs"].is_object())
      file.sha256 = text_of(sibling["lfs"], "sha256");
    if (file.sha256.size() != 64) file.sha256.clear();
    weights |= is_weight;
    (is_gguf ? ggufs : folder).push_back(std::move(file));
  }
  if (weights) return folder;
  if (ggufs.size() == 1) return ggufs;
  if (ggufs.empty())
    throw ModelError(repository, "has neither safetensors nor GGUF files",
                     "choose a repository with one of them");
  std::vector<std::string> names;
  for (const RemoteFile& file : ggufs) names.push_back(file.path.filename().string());
  throw ModelError(repository,
                   fmt::format("has {} GGUF files: {}", names.size(),
                               printable(fmt::format("{}", fmt::join(names, ", ")))),
                   fmt::format("choose one: {}:{}", repository, printable(names[0])));
}

fs::path models_folder() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data && *data == '/') return fs::path(data) / "mulciber" / "models";
  const char* home = std::getenv("HOME");
  if (!home || *home != '/')
    throw ModelError("the folder for models", "is not known: neither XDG_DATA_HOME nor HOME is set",
                     "give one with --output");
  return fs::path(home) / ".local/share/mulciber/models";
}

}  // namespace mulciber::apps
