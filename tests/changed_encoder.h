// Changed copies of the small text encoder of tests/data.
#pragma once

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoints/json.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/support.h"

namespace mulciber::tests {

/// A copy of the small text encoder, which classifies, whose files may be changed.
class ChangedEncoder {
 public:
  ChangedEncoder() {
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
      std::filesystem::copy_file(std::filesystem::path(small_encoder()) / name,
                                 folder_.path() / name);
  }
  std::string path() const { return folder_.path().string(); }
  void write(const std::string& name, const Json& json) const {
    write_file(folder_.path() / name, json.dump());
  }
  void set(const char* key, const Json& value) const {
    Json config = Json::parse(read_file(folder_.path() / "config.json"));
    config[key] = value;
    write("config.json", config);
  }
  /// Adds the modules of a sentence encoder; pooling: the configuration of the pooling module.
  void add_modules(const Json& pooling, const std::vector<std::string>& more = {}) const {
    Json modules = Json::array();
    const auto add = [&](const std::string& name, const std::string& where) {
      modules.push_back({{"idx", modules.size()},
                         {"name", std::to_string(modules.size())},
                         {"path", where},
                         {"type", "sentence_transformers.models." + name}});
    };
    add("Transformer", "");
    add("Pooling", "1_Pooling");
    for (const std::string& name : more) add(name, "2_" + name);
    write("modules.json", modules);
    std::filesystem::create_directories(folder_.path() / "1_Pooling");
    write("1_Pooling/config.json", pooling);
  }
  /// Makes the two rows of the classifier's output those of start and end.
  void make_reader() const {
    set("architectures", {"RobertaForQuestionAnswering"});
    std::string file = read_file(folder_.path() / "model.safetensors");
    uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    std::string header = file.substr(8, length);
    const std::string from = "classifier.out_proj", to = "qa_outputs";
    for (size_t at; (at = header.find(from)) != std::string::npos;) {
      header.replace(at, from.size(), to);
      header.append(from.size() - to.size(), ' ');
    }
    REQUIRE(header.size() == length);
    write_file(folder_.path() / "model.safetensors", file.replace(8, length, header));
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace mulciber::tests
