// A model's files are opened once, whatever is asked of them, and its capabilities can be asked
// for.
#include "models/loading/open_files.h"

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoints/mapped_file.h"
#include "models/generation/language_model.h"
#include "models/loading/inspect.h"
#include "models/translation/translation_model.h"
#include "mulciber/text_generator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

/// Counts how often each file in a folder was opened while this object lives.
class OpenedFiles {
 public:
  explicit OpenedFiles(const fs::path& folder) {
    watch_mapped_files([this, folder](const fs::path& path) {
      if (path.parent_path() == folder) ++times_[path.filename().string()];
    });
  }
  ~OpenedFiles() { watch_mapped_files({}); }
  OpenedFiles(const OpenedFiles&) = delete;
  OpenedFiles& operator=(const OpenedFiles&) = delete;

  /// Counts by file name.
  const std::map<std::string, int>& times() const { return times_; }
  void check_once(std::vector<std::string> files) const {
    std::map<std::string, int> once;
    for (std::string& file : files) once[std::move(file)] = 1;
    CHECK(times_ == once);
  }

 private:
  std::map<std::string, int> times_;
};

std::string part_name(int number) {
  return "qwen3-0000" + std::to_string(number) + "-of-00003.gguf";
}

/// Writes a split GGUF file of three parts, the first of which has a chat template.
void write_split_model(const fs::path& folder) {
  for (int number : {2, 3})
    fs::copy_file(data_dir() / "gguf_families" / part_name(number), folder / part_name(number));
  std::string bytes = read_file(data_dir() / "gguf_families" / part_name(1));
  const auto number = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const std::string key = "tokenizer.chat_template";
  std::string text = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}{#";
  // The text fills whole units of alignment, so that the tensors keep their offsets within them.
  const auto size = [&] { return 8 + key.size() + 4 + 8 + text.size() + 2; };
  while (size() % 32 != 0) text += ' ';
  text += "#}";
  uint64_t values;
  std::memcpy(&values, &bytes[16], 8);
  bytes.replace(16, 8, number(values + 1));
  bytes.insert(24, number(uint64_t{key.size()}) + key + number(uint32_t{8}) +
                       number(uint64_t{text.size()}) + text);
  write_file(folder / part_name(1), bytes);
}

}  // namespace

TEST_CASE("Every file of a language model is opened once") {
  const fs::path folder = data_dir() / "gemma3";
  const std::vector<std::string> files = {"config.json", "generation_config.json",
                                          "model.safetensors", "tokenizer.json",
                                          "tokenizer_config.json"};
  const OpenedFiles opened(folder);
  const auto model = open_model(folder.string());
  int plans = 0;
  // With this context the rotation angles do not fill a whole unit of memory.
  GeneratorOptions options = {.context = 61};
  const MemoryPrediction predicted = TextGenerator::predict(shared_device(), *model, options);
  options.on_plan = [&](const MemoryPrediction& plan) {
    ++plans;
    CHECK(plan.weight_bytes == predicted.weight_bytes);
    CHECK(plan.context_bytes == predicted.context_bytes);
    CHECK(plan.key_value_bytes == predicted.key_value_bytes);
  };
  TextGenerator generator(shared_handle(), model, options), second(shared_handle(), model, options);
  CHECK(plans == 2);  // one for each generator
  CHECK(generator.statistics().weight_bytes == predicted.weight_bytes);
  CHECK(generator.generate("The red", {.max_new_tokens = 3, .ignore_end = true}).ids.size() == 3);
  const std::vector<ChatMessage> messages = {{"user", "Hi"}};
  CHECK(generator.chat_prompt(messages) == generator.chat_prompt(messages));
  CHECK(generator.default_sampling().seed == 0);
  CHECK(inspect(*model).at("capabilities") == Json::array({"continue text", "encode text"}));
  opened.check_once(files);
}

TEST_CASE("A path alone opens every file once too") {
  const fs::path folder = data_dir() / "gemma3";
  const OpenedFiles opened(folder);
  TextGenerator generator(shared_handle(), folder.string(), {.context = 32});
  generator.chat_prompt(std::vector<ChatMessage>{{"user", "Hi"}});
  REQUIRE(opened.times().size() == 5);
  for (const auto& [file, times] : opened.times()) {
    INFO(file);
    CHECK(times == 1);
  }
}

TEST_CASE("Every file of a translation model is opened once") {
  for (const char* name : {"marian", "luong"}) {
    DYNAMIC_SECTION(name) {
      const fs::path folder = data_dir() / name;
      std::vector<std::string> files;
      for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string file = entry.path().filename().string();
        // Reference values and cases are not part of the model.
        if (file.find("expected") == file.npos && file.find("cases") == file.npos)
          files.push_back(file);
      }
      const OpenedFiles opened(folder);
      const auto model = open_model(folder.string());
      inspect(*model);
      if (std::string(name) == "luong") {
        load_model(shared_device(), *model);
        CHECK(opened.times().at("model.safetensors") == 1);
        CHECK(opened.times().at("config.json") == 1);
        return;  // it has no tokenizer files
      }
      Translator first(shared_handle(), model), second(shared_handle(), model);
      CHECK(first.translate("iron").text == second.translate("iron").text);
      opened.check_once(files);
    }
  }
}

TEST_CASE("A split GGUF file is named by any of its parts, each of which is opened once") {
  const TemporaryFolder folder;
  write_split_model(folder.path());
  const std::vector<ChatMessage> messages = {{"user", "Hi"}};
  std::vector<Generation> answers;
  for (int number : {1, 2, 3}) {
    INFO(part_name(number));
    const OpenedFiles opened(folder.path());
    const auto model = open_model((folder.path() / part_name(number)).string());
    TextGenerator generator(shared_handle(), model, {.context = 48});
    CHECK(generator.family() == "qwen3");
    CHECK(generator.chat_prompt(messages) == "[user] Hi");
    answers.push_back(
        generator.generate("the red and the blue", {.max_new_tokens = 8, .ignore_end = true}));
    CHECK(answers.back().ids == answers.front().ids);
    CHECK(answers.back().prompt_ids == answers.front().prompt_ids);
    CHECK(model->tokenizer()->vocab_size() == 264);
    CHECK(inspect(*model).at("tokenizer").at("vocab_size") == 264);
    opened.check_once({part_name(1), part_name(2), part_name(3)});
  }
}

TEST_CASE("A description says which class loads a model") {
  using enum ModelCapability;
  struct Row {
    const char* model;
    std::vector<ModelCapability> expected;
  };
  // What a model was trained for comes first.
  const Row rows[] = {{"tests/data/gemma3", {kContinueText, kEncodeText}},
                      {"tests/data/marian", {kTranslate}},
                      {"tests/data/roberta_cls", {kClassifyText, kEncodeText}},
                      {"assets/vit-digits", {kClassifyImages, kEncodeImages}},
                      {"assets/digit-strings", {kReadImageText}},
                      {"tests/data/vision_language/llava", {kContinueText, kSeeImages}}};
  for (const Row& row : rows) {
    INFO(row.model);
    const ModelDescription found = describe(*open_model((source_dir() / row.model).string()));
    CHECK(found.supported);
    CHECK(found.capabilities == row.expected);
    CHECK(found.files == 1);
  }
  const fs::path folder = data_dir() / "marian";
  const ModelDescription marian = describe(*open_model(folder.string()));
  const Json report = inspect(open_files(folder));
  CHECK(marian.path == folder.string());
  CHECK(marian.format == "Hugging Face folder");
  CHECK(marian.family == "marian");
  CHECK(marian.model_class == "MarianMTModel");
  CHECK_FALSE(marian.chat_template);
  CHECK(marian.tensors == report.at("tensors").size());
  CHECK(marian.bytes == report.at("totals").at("bytes"));
  CHECK(marian.parameters == marian.bytes / 4);
  CHECK(marian.vocabulary == 273);
  CHECK((marian.encoder_layers > 0 && marian.decoder_layers > 0 && marian.context > 0));
  CHECK(Json::parse(inspect_json(*open_model(folder.string()))) == report);

  const TemporaryFolder split;
  write_split_model(split.path());
  const ModelDescription gguf = describe(*open_model((split.path() / part_name(2)).string()));
  CHECK(gguf.format == "GGUF file, version 3");
  CHECK(gguf.family == "qwen3");
  CHECK(gguf.model_class.empty());
  CHECK(gguf.chat_template);
  CHECK(gguf.files == 3);

  const ModelDescription weights = describe(*open_model((folder / "model.safetensors").string()));
  CHECK(weights.format == "safetensors file");
  CHECK_FALSE(weights.supported);
  CHECK(weights.capabilities.empty());
  CHECK(weights.family.empty());
  CHECK(weights.parameters == marian.parameters);
}

TEST_CASE("Models do what their family offers, and nothing else") {
  struct Row {
    const char* model;
    CapabilitySet expected;
  };
  const Row rows[] = {
      {"gemma3", {Capability::kContinueText, Capability::kEncodeText}},
      {"gguf_families/gpt2.gguf", {Capability::kContinueText, Capability::kEncodeText}},
      {"marian", {Capability::kTranslate}},
      {"bahdanau", {Capability::kTranslate}},
      {"luong", {Capability::kTranslate}},
      {"roberta_cls", {Capability::kEncodeText, Capability::kClassify, Capability::kAnswer}}};
  for (const Row& row : rows) {
    INFO(row.model);
    const OpenModel opened = open_files(data_dir() / row.model);
    const auto model = load_model(shared_device(), opened, {.context = 32});
    CHECK((model->continues_text() != nullptr) == row.expected.has(Capability::kContinueText));
    CHECK((model->translates() != nullptr) == row.expected.has(Capability::kTranslate));
    CHECK((model->encodes_text() != nullptr) == row.expected.has(Capability::kEncodeText));
    for (const CapabilityRow& capability : capability_rows()) {
      INFO(capability.name);
      CHECK(opened.family().capabilities.has(capability.capability) ==
            row.expected.has(capability.capability));
    }
    const Extents planned = opened.architecture().extents(), there = model->extents();
    CHECK(there.vocabulary == planned.vocabulary);
    CHECK(there.decoder_layers == planned.decoder_layers);
    CHECK(there.cross_layers == planned.cross_layers);
    CHECK(opened.architecture().predict(shared_device().capabilities(), {}).weight_bytes >=
          model->weight_bytes());
  }
}

TEST_CASE("An encoder does what its head was trained for") {
  const OpenModel opened = open_files(data_dir() / "roberta_cls");
  const CapabilitySet capabilities = opened.capabilities();
  CHECK(capabilities.has(Capability::kEncodeText));
  CHECK(capabilities.has(Capability::kClassify));
  CHECK_FALSE(capabilities.has(Capability::kAnswer));
  CHECK(inspect(opened).at("capabilities") == Json{"encode text", "classify"});
  const std::string message =
      model_error([&] { opened.require(Capability::kTranslate); }).value_or("");
  CHECK_THAT(message, ContainsSubstring("(`mulciber embed`) and classifies (`mulciber classify`)"));
  CHECK_THAT(message, !ContainsSubstring("mulciber answer"));
}

TEST_CASE("A model that does something else says what, and which command that is") {
  const auto message = [](const char* model, Capability wanted) {
    const OpenModel opened = open_files(data_dir() / model);
    return model_error([&] { opened.require(wanted); }).value_or("");
  };
  CHECK(message("marian", Capability::kTranslate) == "");
  CHECK_THAT(message("marian", Capability::kContinueText),
             ContainsSubstring("is a marian model, which is not one that continues texts; it "
                               "translates (`mulciber translate`)"));
  CHECK_THAT(message("gemma3", Capability::kHear),
             ContainsSubstring("transcribes speech; it continues texts (`mulciber generate`)"));
  // Nothing is loaded before the refusal.
  const auto opened = open_model((data_dir() / "gemma3").string());
  const uint64_t before = shared_device().memory().peak();
  CHECK(model_error([&] { Translator(shared_handle(), opened); }).has_value());
  CHECK(shared_device().memory().peak() == before);
}
