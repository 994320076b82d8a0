#include "conformance/malformed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

CaseResult judge_malformed(Device& device, const ModelsUnderTest& models,
                           const std::filesystem::path& path, bool control,
                           const RunOptions& options) {
  return guarded([&]() -> CaseResult {
    CaseResult result;
    try {
      const std::string missing = models.read(device, path);
      result = !missing.empty() ? CaseResult{Status::kNotSupported, missing}
               : control        ? CaseResult{Status::kPass, "opens, as it should"}
                                : CaseResult{Status::kFail, "opens without an error"};
    } catch (const ModelError& error) {
      const std::string text = error.what();
      const bool clear = std::count(text.begin(), text.end(), '\n') <= 1 &&
                         text.find(path.filename().string()) != std::string::npos;
      const bool good = !control && clear;
      result = {good ? Status::kPass : Status::kFail,
                (clear ? "" : "not one clear error naming the file: ") + text};
    } catch (const std::exception& error) {
      result = {Status::kFail, fmt::format("not the error of a reader: {}", error.what())};
    }
    result.repeats = 1;
    inject(options.fault, device, {}, true);  // there are no results here to corrupt
    return result;
  });
}

std::string malformed_case_name(std::string name) {
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    letter = std::isalnum(byte) ? static_cast<char>(std::tolower(byte)) : '_';
  }
  return "mulciber.malformed." + name;
}

}  // namespace

std::vector<SuiteCase> load_malformed(const std::filesystem::path& manifest,
                                      const ModelsUnderTest& models) {
  const Json document = read_json(manifest);
  if (!document.is_object() || !document.contains("entries") || !document["entries"].is_array()) {
    throw ModelError(manifest.string(), "has no list `entries`",
                     "see docs/reference/conformance-vectors.md for the format");
  }
  std::vector<SuiteCase> cases;
  for (const Json& entry : document["entries"]) {
    try {
      const std::filesystem::path path =
          manifest.parent_path() / entry.at("path").get<std::string>();
      const bool control =
          entry.value("expectation", std::string()).find("control") != std::string::npos;
      SuiteCase c;
      c.name = malformed_case_name(entry.at("path"));
      c.op = "malformed";
      c.must_pass = true;
      c.run = [path, control, &models](Device& device, const RunOptions& options) {
        return judge_malformed(device, models, path, control, options);
      };
      cases.push_back(std::move(c));
    } catch (const Json::exception& error) {
      throw ModelError(manifest.string(), fmt::format("entry {}: {}", cases.size(), error.what()),
                       "see docs/reference/conformance-vectors.md for the format");
    }
  }
  return cases;
}

}  // namespace mulciber::conformance
