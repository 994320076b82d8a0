// Files of models in C: they come from memory or from functions.
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/support.h"

#include "mulciber/mulciber_c.h"

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
