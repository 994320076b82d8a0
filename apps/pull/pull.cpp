// `mulciber pull`: downloads models.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/cli/command.h"
#include "apps/cli/progress.h"
#include "apps/cli/standard_error.h"
#include "apps/pull/download.h"
#include "apps/pull/model_source.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

namespace fs = std::filesystem;

struct PullArguments {
  std::string model, output, sha256;
  bool list = false, json = false;
};

std::string megabytes(std::uint64_t bytes) {
  return bytes > 0 ? fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6) : "?";
}

void print_list(bool json) {
  nlohmann::json all = nlohmann::json::array();
  for (const CatalogueEntry& entry : catalogue()) {
    if (json) {
      all.push_back({{"name", entry.name},
                     {"about", entry.about},
                     {"parameters", entry.parameters},
                     {"license", entry.license},
                     {"url", entry.url},
                     {"repository", entry.repository},
                     {"bytes", entry.bytes},
                     {"sha256", entry.sha256}});
    } else {
      fmt::print("{:<14} {:>5} {:>7}  {} ({})\n", entry.name, entry.parameters,
                 megabytes(entry.bytes), entry.about, entry.license);
    }
  }
  if (json) fmt::print("{}\n", all.dump(1));
}

std::string token() {
  const char* value = std::getenv("HF_TOKEN");
  return value ? value : "";
}

std::vector<RemoteFile> files_of(const ModelSource& source) {
  if (source.file) return {*source.file};
  const Repository& repository = *source.repository;
  if (!repository.file.empty()) return {hub_file(repository.name, repository.file)};
  return files_of_repository(repository.name, fetch_text(listing_url(repository.name), token()));
}

/// The path for a file. A single file may be given a name; several go into a folder.
fs::path target_of(const RemoteFile& file, const PullArguments& options, bool alone) {
  if (options.output.empty()) return models_folder() / file.path;
  const fs::path output = options.output;
  std::error_code ignored;
  const bool folder = !alone || options.output.ends_with('/') || fs::is_directory(output, ignored);
  return folder ? output / file.path.filename() : output;
}

DownloadResult fetch(const RemoteFile& file, const fs::path& target, const std::string& sha256) {
  std::optional<Progress> progress;
  // The token is sent to the hub alone.
  const bool at_hub = file.url.starts_with(hub_endpoint() + "/");
  DownloadRequest request{.url = file.url,
                          .target = target,
                          .bytes = file.bytes,
                          .sha256 = sha256,
                          .token = at_hub ? token() : "",
                          .progress = {}};
  request.progress = [&](std::uint64_t done, std::uint64_t total) {
    if (!progress && done > 0)
      progress.emplace(printable(target.filename().string()) + ", MB", total / 1'000'000);
    if (progress) progress->update(done / 1'000'000);
  };
  DownloadResult result = download(request);
  if (progress) progress->finish();
  return result;
}

int run(const PullArguments& options) {
  if (options.list) {
    print_list(options.json);
    return kSuccess;
  }
  if (options.model.empty())
    throw SettingError("pull", "was not told what to fetch",
                       "give a name, owner/name[:file] or a URL, or --list");
  interrupted();  // installs the handler
  const ModelSource source = find_source(options.model);
  const std::vector<RemoteFile> files = files_of(source);
  if (!options.sha256.empty() && files.size() != 1)
    throw SettingError("--sha256",
                       fmt::format("is for one file, and this model has {}", files.size()),
                       "leave it out");
  nlohmann::json report = nlohmann::json::array();
  fs::path place;
  for (const RemoteFile& file : files) {
    const fs::path target = target_of(file, options, files.size() == 1);
    place = files.size() == 1 ? target : target.parent_path();
    const DownloadResult result =
        fetch(file, target, options.sha256.empty() ? file.sha256 : options.sha256);
    report.push_back({{"path", target.string()},
                      {"bytes", result.bytes},
                      {"resumed_at", result.resumed_at},
                      {"sha256", result.sha256},
                      {"checked", result.checked},
                      {"was_there", result.was_there}});
    if (!options.json)
      tell("{}: {}, SHA-256 {}{}\n", target.filename().string(),
           result.was_there ? "was there" : megabytes(result.bytes), result.sha256,
           result.checked ? " as expected" : " (nothing to compare it with)");
  }
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"path", place.string()}, {"files", report}}.dump());
  else
    fmt::print("{}\n", place.string());
  return kSuccess;
}

}  // namespace

void add_pull(Command& app, int& code) {
  auto options = std::make_shared<PullArguments>();
  Command command = app.add_subcommand(
      "pull", "Fetch a model: from a small catalogue, the Hugging Face hub, or any URL");
  command
      .add_option("model", options->model,
                  "a name of --list, owner/name, owner/name:file, or a URL")
      .type_name("NAME|URL");
  command
      .add_option("-o,--output", options->output,
                  "file or folder to write to (default: XDG_DATA_HOME/mulciber/models)")
      .type_name("PATH");
  command.add_option("--sha256", options->sha256, "what the file must be, in hexadecimal")
      .check([](const std::string& text) {
        return text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos
                   ? std::string()
                   : std::string("64 hexadecimal digits are needed");
      });
  command.add_flag("--list", options->list, "the models of the catalogue");
  command.add_flag("--json", options->json, "machine-readable output");
  command.footer(
      "Prints the path of what was fetched. A download that was cut off goes on where it ended. "
      "HF_TOKEN is sent to the hub for\n"
      "models that need an account, HF_ENDPOINT names another hub.\n\n"
      "Exit code: 0 success, 2 no such model, a file that is not as expected or a network that "
      "fails, 130 interrupted.\n"
      "Example: mulciber pull gemma-3-270m");
  command.callback([options, &code] {
    try {
      code = run(*options);
    } catch (const ModelError&) {
      if (!interrupted()) throw;
      tell("mulciber: interrupted: the next pull goes on where this one ended\n");
      code = kInterrupted;
    }
  });
}

}  // namespace mulciber::apps
