#include "conformance/vectors/vectors.h"

#include <fmt/format.h>

#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"
#include "checkpoints/safetensors.h"
#include "conformance/vectors/attention_vectors.h"
#include "conformance/vectors/recurrent_vectors.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

std::string vector_case_name(std::string name) {
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    letter = std::isalnum(byte) || letter == '.' || letter == '_'
                 ? static_cast<char>(std::tolower(byte))
                 : '_';
  }
  return "mulciber.vectors." + name;
}

}  // namespace

std::vector<SuiteCase> load_vectors(const std::filesystem::path& path) {
  const Json document = read_json(path);
  if (!document.is_object() || !document.contains("cases") || !document["cases"].is_array()) {
    throw ModelError(path.string(), "has no list `cases`",
                     "see docs/reference/conformance-vectors.md for the format");
  }
  std::filesystem::path tensors = path;
  std::unique_ptr<const SafetensorsFile> file;
  std::vector<SuiteCase> cases;
  for (const Json& entry : document["cases"]) {
    const std::string where = fmt::format("case {}", cases.size());
    try {
      const bool attention = entry.contains("score");
      const std::string name = entry.at("name"), lacking = attention ? missing_of_attention(entry)
                                                                     : missing_of_recurrent(entry);
      for (DataType type : {DataType::kF32, DataType::kF16}) {
        SuiteCase c;
        c.name = vector_case_name(name);
        c.op = "vectors";
        c.types = name_of(type);
        c.must_pass = true;
        c.place = cases.size();
        if (!lacking.empty()) {
          c.run = [lacking](Device&, const RunOptions&) {
            return CaseResult{Status::kNotSupported, lacking};
          };
          cases.push_back(std::move(c));
          break;
        }
        if (type == DataType::kF16) c.name += ".f16";
        if (!file)
          file = std::make_unique<SafetensorsFile>(tensors.replace_extension(".safetensors"));
        c.op_case = std::make_shared<OpCase>(attention ? attention_vector(entry, *file, type)
                                                       : recurrent_vector(entry, *file, type));
        c.run = [op_case = c.op_case](Device& device, const RunOptions& options) {
          return run_case(device, *op_case, nullptr, options);
        };
        cases.push_back(std::move(c));
      }
    } catch (const Json::exception& error) {
      throw ModelError(path.string(), fmt::format("{}: {}", where, error.what()),
                       "see docs/reference/conformance-vectors.md for the format");
    }
  }
  return cases;
}

}  // namespace mulciber::conformance
