// Models from the application's memory and from its functions: their bits are those of models from
// paths.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoints/mapped_file.h"
#include "checkpoints/weights.h"
#include "models/loading/inspect.h"
#include "models/loading/open_files.h"
#include "mulciber/text_generator.h"
#include "mulciber/translator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

/// A model's files in memory, and functions that give their bytes as an application would.
struct Pack {
  std::map<std::string, std::string> files;
  size_t calls = 0, largest = 0;

  /// For a folder, all files; with `part`, the files whose names begin with it.
  explicit Pack(const fs::path& folder, const std::string& part = "") {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && entry.path().filename().string().find(part) == 0)
        files[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
  }
  std::vector<LentFile> in_memory() const {
    std::vector<LentFile> list;
    for (const auto& [name, bytes] : files)
      list.push_back({.name = name, .bytes = std::as_bytes(std::span(bytes))});
    return list;
  }
  std::vector<LentFile> behind_functions() {
    std::vector<LentFile> list;
    for (const auto& [name, bytes] : files) {
      const std::string& content = bytes;
      const auto read = [this, &content](uint64_t offset, std::span<std::byte> into) {
        ++calls;
        largest = std::max(largest, into.size());
        return content.copy(reinterpret_cast<char*>(into.data()), into.size(), offset);
      };
      list.push_back({.name = name, .read = read, .size = content.size()});
    }
    return list;
  }
};

/// Every byte that a model's table of weights makes of its files.
std::map<std::string, std::string> weights_of_files(const OpenModel& model) {
  struct Sink : WeightSink {
    std::map<std::string, std::string> weights;
    std::string* current = nullptr;
    void begin(const std::string& name, std::span<const WeightSegment>) override {
      current = &weights[name];
    }
    void write(size_t, uint64_t, std::span<const std::byte> bytes) override {
      current->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  } sink;
  WeightTable table;
  for (const CheckpointTensor* tensor : model.checkpoint().tensors()) {
    if (tensor->shape.size() != 2) continue;
    const Shape shape{tensor->shape[0], tensor->shape[1]};
    table.push_back({tensor->name, WeightRole::kMatrix, shape, {{{tensor->name}, shape}}});
    table.push_back({tensor->name + " turned",
                     WeightRole::kMatrix,
                     {shape.columns(), shape.rows()},
                     {{{tensor->name}, {shape.columns(), shape.rows()}, SourceForm::kTransposed}}});
  }
  read_weights(table, model.checkpoint(), "any", MatrixStorage::kAsInFile, sink);
  return std::move(sink.weights);
}

/// Opens a model by path, from memory and from functions, and checks that the bits are the same.
template <typename Check>
void check_all_ways(const std::string& path, Pack& pack, const Check& check) {
  const auto by_path = open_model(path);
  size_t opened = 0;
  watch_mapped_files([&](const fs::path&) { ++opened; });
  const auto memory = open_model(pack.in_memory()), functions = open_model(pack.behind_functions());
  CHECK(memory->checkpoint().names() == by_path->checkpoint().names());
  const auto expected = weights_of_files(*by_path);
  CHECK_FALSE(expected.empty());
  CHECK(weights_of_files(*memory) == expected);
  CHECK(weights_of_files(*functions) == expected);
  check(memory);
  check(functions);
  CHECK(opened == 0);
  watch_mapped_files({});
  check(by_path);
  CHECK(pack.calls > 2 * pack.files.size());
  CHECK(pack.largest <= kMostLentRead);
}

}  // namespace

TEST_CASE("A folder from memory and from functions is that of a path") {
  const fs::path folder = data_dir() / "gemma3";
  Pack pack(folder);
  std::vector<Generation> answers;
  const Json tokenizer = inspect(open_files(folder)).at("tokenizer");
  check_all_ways(folder.string(), pack, [&](const std::shared_ptr<const OpenModel>& model) {
    TextGenerator generator(shared_handle(), model, {.context = 48});
    answers.push_back(generator.generate("The red", {.max_new_tokens = 6, .ignore_end = true}));
    CHECK(answers.back().ids == answers.front().ids);
    CHECK(inspect(*model).at("tokenizer") == tokenizer);
  });
  // A file that is not in the list does not exist for the model, whatever the file system holds.
  auto list = pack.in_memory();
  std::erase_if(list, [](const LentFile& file) { return file.name == "tokenizer.json"; });
  const auto without = open_model(list, "the pack");
  CHECK_THAT(model_error([&] { (void)without->tokenizers(); }).value_or(""),
             ContainsSubstring("has no tokenizer"));
}

TEST_CASE("A translation model from memory and from functions is that of a path") {
  const fs::path folder = data_dir() / "marian";
  Pack pack(folder);
  std::vector<Translation> found;
  check_all_ways(folder.string(), pack, [&](const std::shared_ptr<const OpenModel>& model) {
    found.push_back(Translator(shared_handle(), model).translate("iron", {.beams = 3}));
    CHECK(found.back().ids == found.front().ids);
    CHECK(found.back().score == found.front().score);
  });
}

TEST_CASE("GGUF files, split ones too, come from memory and from functions") {
  const fs::path folder = data_dir() / "gguf_families";
  Pack pack(folder, "qwen3-");
  std::vector<Generation> answers;
  check_all_ways((folder / "qwen3-00001-of-00003.gguf").string(), pack,
                 [&](const std::shared_ptr<const OpenModel>& model) {
                   TextGenerator generator(shared_handle(), model, {.context = 48});
                   answers.push_back(generator.generate("the red and the blue",
                                                        {.max_new_tokens = 6, .ignore_end = true}));
                   CHECK(answers.back().ids == answers.front().ids);
                 });
}

TEST_CASE("Functions that fail or sizes that are wrong are one error that names the file") {
  Pack pack(data_dir() / "marian");
  const auto message = [&](const std::string& name, const auto& change) {
    auto list = pack.behind_functions();
    for (LentFile& file : list)
      if (file.name == name) change(file);
    return model_error([&] { Translator(shared_handle(), open_model(list, "the pack")); })
        .value_or("");
  };
  CHECK(message("", [](LentFile&) {}) == "");
  const auto fewer = [](uint64_t, std::span<std::byte> into) { return into.size() - 1; };
  const auto more = [](uint64_t, std::span<std::byte> into) { return into.size() + 1; };
  for (const char* name : {"config.json", "model.safetensors", "source.spm", "vocab.json"}) {
    INFO(name);
    CHECK_THAT(message(name, [&](LentFile& file) { file.read = fewer; }),
               ContainsSubstring(name) && ContainsSubstring("the application's function gave"));
    CHECK_THAT(message(name, [&](LentFile& file) { file.read = more; }), ContainsSubstring(name));
    CHECK_THAT(message(name, [&](LentFile& file) { file.size += 4; }), ContainsSubstring(name));
    CHECK_THAT(message(name, [&](LentFile& file) { file.size -= 4; }), ContainsSubstring(name));
    CHECK_THAT(message(name, [&](LentFile& file) { file.size = UINT64_MAX; }),
               ContainsSubstring(name));
    CHECK_THAT(message(name, [&](LentFile& file) { file.size = 1ull << 40; }),
               ContainsSubstring(name));
  }
  // The function fails later, while weights are read.
  size_t left = 1;  // for its header
  const uint64_t before = shared_device().memory().reserved();
  CHECK_THAT(message("model.safetensors",
                     [&](LentFile& file) {
                       file.read = [&left, all = file.read](uint64_t at, std::span<std::byte> to) {
                         return left > 0 ? (--left, all(at, to)) : 0;
                       };
                     }),
             ContainsSubstring("model.safetensors"));
  shared_device().memory().trim();
  CHECK(shared_device().memory().reserved() <= before);
  auto list = pack.behind_functions();
  list.front().read = [](uint64_t, std::span<std::byte>) -> size_t {
    throw std::runtime_error("of the application");
  };
  CHECK_THROWS_WITH(open_model(list), "of the application");
  list = pack.in_memory();
  list.push_back(list.front());
  CHECK_THAT(model_error([&] { (void)open_model(list); }).value_or(""),
             ContainsSubstring("stands twice"));
  for (const char* name : {"", "..", "../config.json", "/config.json", "a/"}) {
    list.back().name = name;
    CHECK_THAT(model_error([&] { (void)open_model(list); }).value_or(""),
               ContainsSubstring("is not the name of a file"));
  }
  CHECK_THAT(model_error([&] { (void)open_model(std::vector<LentFile>()); }).value_or(""),
             ContainsSubstring("has no files"));
}
