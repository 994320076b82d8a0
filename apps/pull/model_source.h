// Finds the model that `mulciber pull` is asked for, and its files' addresses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mulciber::apps {

/// One file to download. path: below the folder of models.
struct RemoteFile {
  std::string url;
  std::filesystem::path path;
  std::uint64_t bytes = 0;  // 0: unknown
  std::string sha256;       // empty: unknown
};

/// A model in the catalogue.
struct CatalogueEntry {
  std::string name, about, parameters, license;
  std::string url, repository;  // one of them is set
  std::uint64_t bytes = 0;
  std::string sha256;
};

/// The models of catalogue.json, which is part of the program.
const std::vector<CatalogueEntry>& catalogue();

/// A name such as `owner/name` or `owner/name:file`.
struct Repository {
  std::string name;  // owner/name
  std::string file;  // empty: all files that a model needs
};

/// The source that the argument names: the first that fits of a URL (http, https), an entry of the
/// catalogue, a repository.
struct ModelSource {
  std::optional<RemoteFile> file;
  std::optional<Repository> repository;
};
/// Throws ModelError for other arguments, and for files outside of their folder.
ModelSource find_source(const std::string& words);

/// The address of the model hub: HF_ENDPOINT, which Hugging Face's own tools read too, or
/// https://huggingface.co.
std::string hub_endpoint();
/// The address of the hub's list of a repository's files.
std::string listing_url(const std::string& repository);
RemoteFile hub_file(const std::string& repository, const std::string& file);
/// The files that make a repository's model, from the hub's listing (a JSON text): configuration,
/// tokenizer and safetensors; or the one GGUF file where there are no safetensors. Throws
/// ModelError where there is no model that can run, or more than one GGUF file to choose from
/// (naming them).
std::vector<RemoteFile> files_of_repository(const std::string& repository,
                                            const std::string& listing);

/// XDG_DATA_HOME/mulciber/models, or ~/.local/share/mulciber/models. Throws ModelError where there
/// is no home folder.
std::filesystem::path models_folder();

}  // namespace mulciber::apps
