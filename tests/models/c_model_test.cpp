// Models in C: their files come from memory or from functions, and they are described.
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/support.h"

#include "mulciber/mulciber_c.h"
#include "mulciber/open_model.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("A model's files come from memory or from functions in C") {
  const Session session(bundled_model());
  MulciberContext* c = session.c;
  std::vector<std::string> names, contents;
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors",
                           "source.spm", "target.spm", "tokenizer_config.json", "vocab.json"}) {
    names.emplace_back(name);
    contents.push_back(read_file(std::filesystem::path(bundled_model()) / name));
  }
  const auto translated = [&](MulciberModel* model) {
    MulciberTranslator* translator = nullptr;
    MulciberTask* task = nullptr;
    REQUIRE(mulciber_load_translator(c, session.device, model, nullptr, &translator) ==
            MULCIBER_OK);
    REQUIRE(mulciber_begin_translation(c, translator, "Two dogs run.", nullptr, &task) ==
            MULCIBER_OK);
    session.finish(task);
    const char* text = nullptr;
    REQUIRE(mulciber_text(c, task, &text) == MULCIBER_OK);
    const std::string copy = text;
    mulciber_destroy_task(task);
    mulciber_destroy_translator(translator);
    return copy;
  };
  const std::string expected = translated(session.model);
  std::vector<MulciberFile> files;
  for (size_t i = 0; i < names.size(); ++i) {
    MulciberFile file = {sizeof(file)};
    file.name = names[i].c_str();
    file.byte_count = contents[i].size();
    file.bytes = contents[i].data();
    if (i % 2 == 0) {
      file.bytes = nullptr;
      file.user = &contents[i];
      file.read = [](void* user, uint64_t offset, void* into, size_t bytes) {
        return static_cast<std::string*>(user)->copy(static_cast<char*>(into), bytes, offset);
      };
    }
    files.push_back(file);
  }
  const auto count = static_cast<uint32_t>(files.size());
  MulciberModel* model = nullptr;
  REQUIRE(mulciber_open_model_files(c, "pack", count, files.data(), &model) == MULCIBER_OK);
  CHECK(translated(model) == expected);
  mulciber_destroy_model(model);

  files[2].byte_count += 100;  // more bytes than the function gives
  CHECK(mulciber_open_model_files(c, "pack", count, files.data(), &model) == MULCIBER_ERROR_MODEL);
  CHECK(model == nullptr);
  CHECK_THAT(session.context.message(), ContainsSubstring("model.safetensors"));
  files[1].bytes = nullptr;
  CHECK(mulciber_open_model_files(c, "pack", count, files.data(), &model) ==
        MULCIBER_ERROR_SETTING);
  CHECK(mulciber_open_model_files(c, nullptr, 0, nullptr, &model) == MULCIBER_ERROR_MODEL);
  CHECK(mulciber_open_model_files(c, "pack", 1, nullptr, &model) == MULCIBER_ERROR_SETTING);
}

TEST_CASE("A model in C is described as in C++") {
  const Context context;
  MulciberContext* c = context.handle;
  struct Row {
    std::string path;
    std::vector<MulciberCapability> capabilities;
  };
  // What a model was trained for comes first.
  const Row rows[] = {
      {bundled_model(), {MULCIBER_CAPABILITY_TRANSLATE}},
      {small_encoder(), {MULCIBER_CAPABILITY_CLASSIFY_TEXT, MULCIBER_CAPABILITY_ENCODE_TEXT}},
      {digits(), {MULCIBER_CAPABILITY_CLASSIFY_IMAGES, MULCIBER_CAPABILITY_ENCODE_IMAGES}},
      {(data_dir() / "gemma3").string(),
       {MULCIBER_CAPABILITY_CONTINUE_TEXT, MULCIBER_CAPABILITY_ENCODE_TEXT}}};
  for (const Row& row : rows) {
    INFO(row.path);
    MulciberModel* model = nullptr;
    REQUIRE(mulciber_open_model(c, row.path.c_str(), &model) == MULCIBER_OK);
    MulciberModelReport report = {sizeof(report)};
    REQUIRE(mulciber_describe_model(c, model, &report) == MULCIBER_OK);
    REQUIRE(mulciber_describe_model(c, model, &report) == MULCIBER_OK);
    const auto opened = open_model(row.path);
    const ModelDescription expected = describe(*opened);
    CHECK(report.supported);
    CHECK(report.path == row.path);
    CHECK(report.format == expected.format);
    CHECK(report.family == expected.family);
    CHECK(report.model_class == expected.model_class);
    CHECK(std::vector(report.capabilities, report.capabilities + report.capability_count) ==
          row.capabilities);
    CHECK((report.chat_template != 0) == expected.chat_template);
    CHECK(report.files == expected.files);
    CHECK(report.tensors == expected.tensors);
    CHECK((report.parameters > 0 && report.parameters == expected.parameters));
    CHECK((report.bytes > 0 && report.bytes == expected.bytes));
    CHECK(report.vocabulary == expected.vocabulary);
    CHECK(report.context == expected.context);
    CHECK(report.encoder_layers == expected.encoder_layers);
    CHECK(report.encoder_heads == expected.encoder_heads);
    CHECK(report.decoder_layers == expected.decoder_layers);
    CHECK(report.decoder_heads == expected.decoder_heads);
    MulciberResult* result = nullptr;
    const char* json = nullptr;
    REQUIRE(mulciber_inspect_model(c, model, &result, &json) == MULCIBER_OK);
    mulciber_destroy_model(model);
    CHECK(json == inspect_json(*opened));
    mulciber_destroy_result(result);
  }
}

TEST_CASE("Models that cannot be described are refused in C with the reason") {
  const Context context;
  MulciberContext* c = context.handle;
  const TemporaryFolder folder;
  write_file(folder.path() / "config.json", R"({"model_type": "perceptron"})");
  std::filesystem::copy(data_dir() / "marian/model.safetensors",
                        folder.path() / "model.safetensors");
  MulciberModel* model = nullptr;
  REQUIRE(mulciber_open_model(c, folder.path().c_str(), &model) == MULCIBER_OK);
  MulciberModelReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_model(c, model, &report) == MULCIBER_OK);
  CHECK_FALSE(report.supported);
  CHECK(report.family == std::string("perceptron"));
  CHECK(report.capability_count == 0);
  CHECK(report.parameters > 0);
  mulciber_destroy_model(model);
  write_file(folder.path() / "config.json", R"({"model_type": "marian", "d_model": -1})");
  REQUIRE(mulciber_open_model(c, folder.path().c_str(), &model) == MULCIBER_OK);
  CHECK(mulciber_describe_model(c, model, &report) == MULCIBER_ERROR_MODEL);
  CHECK_THAT(context.message(), ContainsSubstring("config.json"));
  CHECK((report.family == nullptr && report.tensors == 0));
  CHECK(mulciber_describe_model(c, model, nullptr) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("MulciberModelReport: is NULL"));
  CHECK(mulciber_describe_model(c, nullptr, &report) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("model: is NULL"));
  MulciberResult* result = nullptr;
  const char* json = nullptr;
  CHECK(mulciber_inspect_model(c, nullptr, &result, &json) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("model: is NULL"));
  CHECK(mulciber_inspect_model(c, model, nullptr, &json) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("result: is NULL"));
  CHECK(mulciber_inspect_model(c, model, &result, nullptr) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("json: is NULL"));
  mulciber_destroy_model(model);
}
