// Descriptions of checkpoints, and refusals of malformed ones.
#include "models/loading/inspect.h"
#include "models/loading/open_files.h"

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/model_error.h"

namespace {

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

std::string inspect_refusal(const fs::path& path) {
  return model_error([&] { inspect(open_files(path)); }).value_or("");
}

void copy_marian(const fs::path& to) {
  for (const char* name : {"config.json", "generation_config.json", "tokenizer_config.json",
                           "vocab.json", "source.spm", "target.spm", "model.safetensors"})
    fs::copy(data_dir() / "marian" / name, to / name);
}

}  // namespace

TEST_CASE("a Marian folder is described") {
  const Json report = inspect(open_files(data_dir() / "marian"));
  CHECK(report.at("format") == "Hugging Face folder");
  CHECK(report.at("architecture") == Json({{"model_type", "marian"}, {"class", "MarianMTModel"}}));
  CHECK(report.at("hyperparameters").at("d_model") == 48);
  CHECK(report.at("generation").at("max_length") == 25);
  const Json& tensors = report.at("tensors");
  CHECK(report.at("totals").at("tensors") == tensors.size());
  std::uint64_t bytes = 0;
  for (const Json& tensor : tensors) bytes += tensor.at("bytes").get<std::uint64_t>();
  CHECK(report.at("totals").at("bytes") == bytes);
  CHECK(report.at("totals").at("parameters") == bytes / 4);
  CHECK(report.at("tokenizer").at("vocab_size") == 273);
  CHECK(report.at("tokenizer").at("special").at("eos") == Json({{"id", 0}, {"piece", "</s>"}}));
  CHECK(report.at("notes").empty());

  const std::string text = inspection_text(report);
  CHECK_THAT(text,
             ContainsSubstring("architecture  marian (MarianMTModel)\ncan           translate\n"));
  CHECK_THAT(text, ContainsSubstring("final_logits_bias"));
  CHECK_THAT(text, ContainsSubstring("[1,273]"));
  CHECK_THAT(text, ContainsSubstring("eos 0 '</s>'"));
  CHECK(inspection_text(report, false).find("final_logits_bias") == std::string::npos);
}

TEST_CASE("a single safetensors file is described") {
  const Json report = inspect(open_files(data_dir() / "marian/model.safetensors"));
  CHECK(report.at("format") == "safetensors file");
  CHECK_FALSE(report.contains("architecture"));
  CHECK_FALSE(report.contains("tokenizer"));
  CHECK_THAT(inspection_text(report), ContainsSubstring("safetensors file, weights in 1 file"));
}

TEST_CASE("an unknown architecture is still described") {
  TemporaryFolder folder;
  copy_marian(folder.path());
  write_file(folder.path() / "config.json", R"({"model_type":"perceptron\u0007","layers":[1,2]})");
  fs::remove(folder.path() / "source.spm");
  const Json report = inspect(open_files(folder.path()));
  CHECK(report.at("notes").size() == 1);
  const std::string text = inspection_text(report);
  CHECK_THAT(text, ContainsSubstring("perceptron\\x07") && ContainsSubstring("[1,2]"));
  fs::remove(folder.path() / "config.json");
  CHECK_THAT(inspect(open_files(folder.path())).at("notes").dump(),
             ContainsSubstring("no config.json"));
}

TEST_CASE("a vocabulary beyond the model's is noted") {
  TemporaryFolder folder;
  copy_marian(folder.path());
  Json config = read_json(folder.path() / "config.json");
  config["model_type"] = "other";
  config["vocab_size"] = 272;
  write_file(folder.path() / "config.json", config.dump());
  fs::copy(folder.path() / "source.spm", folder.path() / "spiece.model");
  config["vocab_size"] = 3;
  write_file(folder.path() / "config.json", config.dump());
  CHECK_THAT(inspect(open_files(folder.path())).at("notes").dump(), ContainsSubstring("only 3"));
}

TEST_CASE("what cannot be read is refused by name") {
  TemporaryFolder folder;
  CHECK_THAT(inspect_refusal(folder.path() / "none"), ContainsSubstring("cannot be opened"));
  CHECK_THAT(inspect_refusal(write_file(folder.path() / "m.gguf", std::string("GGUF\3\0\0\0", 8))),
             ContainsSubstring("GGUF") && ContainsSubstring("m.gguf"));
  CHECK_THAT(inspect_refusal(write_file(folder.path() / "m.bin", "PK\3\4....")),
             ContainsSubstring("PyTorch"));
  copy_marian(folder.path());
  REQUIRE(inspect_refusal(folder.path()) == "");

  const auto with = [&](const char* name, const std::string& bytes) {
    const std::string good = read_file(data_dir() / "marian" / name);
    write_file(folder.path() / name, bytes);
    const std::string message = inspect_refusal(folder.path());
    CHECK_THAT(message, ContainsSubstring(name));
    write_file(folder.path() / name, good);
    return message;
  };
  for (const char* name : {"config.json", "generation_config.json", "tokenizer_config.json",
                           "vocab.json", "source.spm", "target.spm", "model.safetensors"}) {
    INFO(name);
    CHECK_THAT(with(name, ""), ContainsSubstring(name));
    CHECK_THAT(with(name, "\x7f\xff junk"), ContainsSubstring(name));
    fs::remove(folder.path() / name);
    fs::create_directory(folder.path() / name);
    CHECK_THAT(inspect_refusal(folder.path()),
               ContainsSubstring(name) && ContainsSubstring("is a folder"));
    fs::remove(folder.path() / name);
    fs::copy(data_dir() / "marian" / name, folder.path() / name);
  }
  CHECK_THAT(
      with("config.json", R"({"model_type":"llama","hidden_size":16,"num_attention_heads":3})"),
      ContainsSubstring("num_attention_heads") && ContainsSubstring("16"));
  CHECK_THAT(
      with("config.json", R"({"model_type":"llama","hidden_size":16,"num_attention_heads":0})"),
      ContainsSubstring("num_attention_heads"));
  CHECK_THAT(with("config.json", R"({"model_type":"marian"})"), ContainsSubstring("missing"));
  REQUIRE(inspect_refusal(folder.path()) == "");
}

TEST_CASE("every fixture folder is described") {
  const fs::path fixtures = fixtures_dir();
  if (fixtures.empty()) MULCIBER_SKIP("no fixtures folder (set MULCIBER_FIXTURES)");
  for (const char* group : {"models", "variants"})
    for (const auto& entry : fs::directory_iterator(fixtures / group)) {
      INFO(entry.path());
      CHECK(inspection_text(inspect(open_files(entry.path()))).size() > 200);
    }
}

TEST_CASE("every bad fixture is refused") {
  const Json manifest = read_json(data_dir() / "bad/manifest.json");
  for (const Json& entry : manifest.at("entries")) {
    const fs::path path = data_dir() / "bad" / entry.at("path").get<std::string>();
    INFO(path);
    const bool control = entry.at("wrong").get<std::string>().find("control") != std::string::npos;
    if (entry.at("kind") == "gguf" && control) continue;
    CHECK(inspect_refusal(path).empty() == control);
  }
}
