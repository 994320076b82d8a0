// Adapters request by request: successive texts of one generator, and texts of one batch.
#include <bit>
#include <cmath>
#include <optional>

#include "mulciber/batch_generator.h"
#include "mulciber/error.h"
#include "mulciber/mulciber_c.h"
#include "mulciber/text_generator.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/lora_families.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

using Wanted = std::optional<std::vector<AdapterScale>>;

const Wanted kNone = std::vector<AdapterScale>();
const Wanted kAll = std::vector<AdapterScale>{{"all", 0.75f}};
const Wanted kBoth = std::vector<AdapterScale>{{"some", 1.25f}, {"all", 0.5f}};

/// The model is in f32, so that merged adapters give the same tokens as those beside the weights.
std::string model() {
  static const TemporaryFolder folder;
  static const bool written = (write_in_f32(tiny_model("qwen2"), folder.path()), true);
  return written ? folder.path().string() : std::string();
}

GeneratorOptions with_adapters() {
  GeneratorOptions options;
  options.context = 48;
  options.load.adapters = {
      {.path = (lora_dir() / "qwen2_all").string(), .name = "all", .scale = 0},
      {.path = (lora_dir() / "qwen2_some").string(), .name = "some", .scale = 1}};
  return options;
}

TextGenerator generator(const GeneratorOptions& options) {
  return {shared_handle(), model(), options};
}

constexpr const char* kLoraPrompt = "the and in the thing";

std::vector<uint32_t> lora_answer(TextGenerator& generator, const Wanted& adapters,
                                  GenerateOptions options = {}) {
  options.sampling = Sampling();
  options.max_new_tokens = 12;
  options.ignore_end = true;
  options.adapters = adapters;
  return generator.generate(kLoraPrompt, options).ids;
}

std::vector<uint32_t> answer_merged(float all, float some) {
  GeneratorOptions options = with_adapters();
  options.load.adapters[0].scale = all;
  options.load.adapters[1].scale = some;
  options.load.merge_adapters = true;
  TextGenerator merged = generator(options);
  CHECK(merged.adapters().empty());
  return lora_answer(merged, std::nullopt);
}

/// A request's answer in a batch: equal only where all bits are.
struct Answer {
  std::vector<uint32_t> ids, bits;
  bool operator==(const Answer&) const = default;
};

void submit(BatchGenerator& batch, const Wanted& adapters, Answer& answer) {
  BatchRequest request;
  request.prompt = kLoraPrompt;
  request.max_new_tokens = 12;
  request.sampling = Sampling();
  request.ignore_end = true;
  request.adapters = adapters;
  request.log_probabilities = 0;
  request.on_token = [&answer](const BatchToken& token) {
    answer.ids.push_back(token.id);
    answer.bits.push_back(std::bit_cast<uint32_t>(*token.log_probability));
  };
  batch.submit(std::move(request));
}

BatchGenerator batch_with(const std::vector<AdapterFile>& adapters,
                          const std::string& path = model()) {
  BatchGeneratorOptions options;
  options.generator = with_adapters();
  options.generator.load.adapters = adapters;
  options.generator.sequences = 4;
  options.prompt_tokens = 8;
  return {shared_handle(), open_model(path), options};
}

Answer answer_alone(BatchGenerator& batch, const Wanted& adapters) {
  Answer answer;
  submit(batch, adapters, answer);
  while (batch.step()) {
  }
  return answer;
}

template <typename Action>
std::string setting_error(Action&& action) {
  try {
    action();
  } catch (const SettingError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("A request says which adapters it wants, and the next one says anew") {
  TextGenerator bare = generator({.context = 48});
  TextGenerator one = generator(with_adapters());
  CHECK(one.adapters() == std::vector<std::string>{"all", "some"});
  const std::vector<uint32_t> of_none = lora_answer(bare, std::nullopt);
  const std::vector<uint32_t> of_all = answer_merged(0.75f, 0);
  const std::vector<uint32_t> of_both = answer_merged(0.5f, 1.25f);
  const std::vector<uint32_t> of_some = answer_merged(0, 1);
  REQUIRE(of_none != of_all);
  REQUIRE(of_all != of_both);
  REQUIRE(of_some != of_none);
  // The prompt is the same, but the cached tokens belong to the previous adapters.
  CHECK(lora_answer(one, kNone) == of_none);
  CHECK(lora_answer(one, kAll) == of_all);
  CHECK(lora_answer(one, kBoth) == of_both);
  CHECK(lora_answer(one, std::nullopt) == of_some);
  CHECK(lora_answer(one, kNone) == of_none);
  CHECK(one.statistics().reused_tokens == 0);
  CHECK(lora_answer(one, kNone) == of_none);
  CHECK(one.statistics().reused_tokens > 0);
  CHECK(lora_answer(one, kAll, {.prompt_lookup = 3}) == of_all);
  CHECK(lora_answer(one, kNone, {.prompt_lookup = 3}) == of_none);
  TextGenerator other = one.conversation();
  CHECK(lora_answer(other, kBoth) == of_both);
}

TEST_CASE("Scores, hidden states and attention are those of the adapters asked for") {
  GeneratorOptions merging = with_adapters();
  merging.load.adapters[0].scale = 0.5f;
  merging.load.adapters[1].scale = 1.25f;
  merging.load.merge_adapters = true;
  TextGenerator one = generator(with_adapters()), merged = generator(merging),
                bare = generator({.context = 48});
  const ScoreInput text = {"", kLoraPrompt};
  const auto sum = [&](TextGenerator& generator, const Wanted& adapters) {
    return generator.score({&text, 1}, {.adapters = adapters}).texts[0].sum;
  };
  const double of_none = sum(bare, std::nullopt), of_both = sum(merged, std::nullopt);
  REQUIRE(std::abs(of_none - of_both) > 1);
  CHECK(sum(one, kNone) == of_none);
  CHECK_THAT(sum(one, kBoth), Catch::Matchers::WithinRel(of_both, 1e-5));
  CHECK(sum(one, kNone) == of_none);
  const std::vector<uint32_t> layers = {2};
  CHECK(one.hidden_states(kLoraPrompt, layers, {.adapters = kNone}).values ==
        bare.hidden_states(kLoraPrompt, layers).values);
  const auto generate = [&](TextGenerator& generator, const Wanted& adapters) {
    GenerateOptions options = {.sampling = Sampling(), .max_new_tokens = 1};
    options.adapters = adapters;
    options.attention = true;
    return generator.generate(kLoraPrompt, options);
  };
  const auto maps = [&](TextGenerator& generator, const Wanted& adapters) {
    return generate(generator, adapters).attention->weights;
  };
  CHECK(maps(one, kNone) == maps(bare, std::nullopt));
  const Generation mixed = generate(one, kBoth);
  CHECK(mixed.attention->weights != maps(bare, std::nullopt));
  // Maps of texts beside a batch follow their adapters as well.
  BatchGenerator batch = batch_with(with_adapters().load.adapters);
  std::vector<uint32_t> ids = mixed.prompt_ids;
  ids.push_back(mixed.ids[0]);
  CHECK(batch.attention(ids, {.adapters = kBoth})->weights == mixed.attention->weights);
  CHECK(batch.attention(ids, {.adapters = kNone})->weights != mixed.attention->weights);
}

TEST_CASE("Keys and values of one mix of adapters are refused for another") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "cache").string();
  TextGenerator one = generator(with_adapters());
  lora_answer(one, kAll);
  one.save_cache(file);
  CHECK(one.load_cache(file) > 0);
  lora_answer(one, kNone);
  CHECK(model_error([&] { one.load_cache(file); }));
  TextGenerator bare = generator({.context = 48});
  CHECK(model_error([&] { bare.load_cache(file); }));
}

TEST_CASE("Texts of one batch have adapters of their own, and those without none of their bits") {
  const std::vector<AdapterFile> files = with_adapters().load.adapters;
  BatchGenerator bare = batch_with({});
  const Answer of_none = answer_alone(bare, std::nullopt);
  BatchGenerator batch = batch_with(files);
  CHECK(batch.adapters() == std::vector<std::string>{"all", "some"});
  const Answer of_all = answer_alone(batch, kAll), of_both = answer_alone(batch, kBoth),
               of_some = answer_alone(batch, std::nullopt);
  CHECK(of_all.ids == answer_merged(0.75f, 0));
  CHECK(of_both.ids == answer_merged(0.5f, 1.25f));
  CHECK(of_some.ids == answer_merged(0, 1));
  CHECK(answer_alone(batch, kNone) == of_none);
  // There are more texts than slots, so that texts move and take over slots of others.
  const std::pair<const Wanted*, const Answer*> texts[] = {
      {&kAll, &of_all},   {&kNone, &of_none}, {&kBoth, &of_both}, {&kNone, &of_none},
      {&kBoth, &of_both}, {&kAll, &of_all},   {&kNone, &of_none}};
  std::vector<Answer> found(std::size(texts));
  for (size_t i = 0; i < found.size(); ++i) {
    submit(batch, *texts[i].first, found[i]);
    for (size_t steps = 0; steps < i; ++steps) batch.step();
  }
  while (batch.step()) {
  }
  for (size_t i = 0; i < found.size(); ++i) {
    INFO("text " << i);
    CHECK(found[i] == *texts[i].second);
  }
}

TEST_CASE("Texts that are generated together share the options' adapters") {
  GeneratorOptions options = with_adapters();
  options.sequences = 2;
  TextGenerator one = generator(options);
  const std::vector<std::string> prompts = {kLoraPrompt, "in the"};
  GenerateOptions settings = {.sampling = Sampling(), .max_new_tokens = 12, .ignore_end = true};
  settings.adapters = kAll;
  CHECK(one.generate_all(prompts, settings)[0].ids == answer_merged(0.75f, 0));
}

TEST_CASE("Adapters that are asked for wrongly are refused by name") {
  TextGenerator one = generator(with_adapters());
  const auto refusal = [&](const std::vector<AdapterScale>& wanted) {
    return setting_error([&] { lora_answer(one, wanted); });
  };
  CHECK_THAT(refusal({{"al", 1}}), ContainsSubstring("adapter 'al'") &&
                                       ContainsSubstring("not loaded") &&
                                       ContainsSubstring("all, some"));
  CHECK_THAT(refusal({{"all", 1}, {"all", 1}}), ContainsSubstring("twice"));
  CHECK_THAT(refusal({{"all", std::nanf("")}}), ContainsSubstring("scale nan"));
  CHECK(refusal({}) == "no error");
  BatchGenerator batch = batch_with(with_adapters().load.adapters);
  BatchRequest request;
  request.prompt = "a";
  request.adapters = std::vector<AdapterScale>{{"other", 1}};
  CHECK_THAT(setting_error([&] { batch.submit(request); }), ContainsSubstring("adapter 'other'"));
  TextGenerator bare = generator({.context = 48});
  CHECK_THAT(setting_error([&] { lora_answer(bare, kAll); }),
             ContainsSubstring("load the model with"));

  GeneratorOptions twice = with_adapters();
  twice.load.adapters[1].name = "all";
  CHECK_THAT(setting_error([&] { generator(twice); }), ContainsSubstring("two adapters"));
  twice.load.adapters[1] = {
      .path = (lora_dir() / "qwen2_some").string(), .name = "x", .scale = INFINITY};
  CHECK_THAT(setting_error([&] { generator(twice); }), ContainsSubstring("scale inf"));
}

TEST_CASE("Texts of one batch go through experts and states with adapters of their own") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not there");
  for (const char* family : {"mixtral", "mamba"}) {
    INFO(family);
    const TemporaryFolder folder;
    const std::string path = (fixtures_dir() / "models2" / family).string();
    const Checkpoint checkpoint(path);
    write_adapted(checkpoint, targets(checkpoint, read_decoder_config(checkpoint), true),
                  folder.path() / "all", folder.path() / "changed");
    const std::vector<AdapterFile> adapters = {{(folder.path() / "all").string(), "all", 0}};
    BatchGenerator batch = batch_with(adapters, path);
    const Wanted wanted[] = {kNone, kAll, std::vector<AdapterScale>{{"all", -0.5f}}};
    Answer together[3], alone[3];
    for (int i = 0; i < 3; ++i) submit(batch, wanted[i], together[i]);
    while (batch.step()) {
    }
    for (int i = 0; i < 3; ++i) alone[i] = answer_alone(batch, wanted[i]);
    for (int i = 0; i < 3; ++i) CHECK(together[i] == alone[i]);
    CHECK(alone[0].bits != alone[1].bits);
    CHECK(alone[1].bits != alone[2].bits);
    BatchGenerator bare = batch_with({}, path);
    CHECK(answer_alone(bare, std::nullopt) == alone[0]);
  }
}

TEST_CASE("Adapters in C are those in C++") {
  TextGenerator expected = generator(with_adapters());
  const auto text = [&](const Wanted& adapters) {
    GenerateOptions options = {.max_new_tokens = 9, .ignore_end = true};
    options.adapters = adapters;
    return expected.generate(kLoraPrompt, options).text;
  };
  const Session session(model());
  MulciberContext* c = session.c;
  // One adapter of either format.
  const std::string all = (lora_dir() / "qwen2_all.gguf").string(),
                    some = (lora_dir() / "qwen2_some").string();
  const MulciberAdapter files[] = {{sizeof(MulciberAdapter), 0, all.c_str(), "all"},
                                   {sizeof(MulciberAdapter), 1, some.c_str(), "some"}};
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 48;
  load.adapters = files;
  load.adapter_count = 2;
  MulciberLoader* loader = nullptr;
  MulciberGenerator* generator = nullptr;
  REQUIRE(mulciber_begin_load(c, session.device, session.model, &load, &loader) == MULCIBER_OK);
  MulciberLoadProgress progress = {sizeof(progress)};
  while (!progress.complete)
    REQUIRE(mulciber_step_load(c, loader, 1 << 20, &progress) == MULCIBER_OK);
  REQUIRE(mulciber_finish_generator(c, loader, &generator) == MULCIBER_OK);
  mulciber_destroy_loader(loader);
  const auto answer_in_c = [&] {
    MulciberGenerateInfo info = {sizeof(info)};
    info.max_new_tokens = 9;
    info.ignore_end = VK_TRUE;
    MulciberTask* task = nullptr;
    REQUIRE(mulciber_begin_generation(c, generator, kLoraPrompt, &info, &task) == MULCIBER_OK);
    session.finish(task);
    const char* found = nullptr;
    REQUIRE(mulciber_text(c, task, &found) == MULCIBER_OK);
    std::string copy = found;
    mulciber_destroy_task(task);
    return copy;
  };
  CHECK(answer_in_c() == text(std::nullopt));
  const MulciberAdapter wanted = {sizeof(wanted), 0.75f, nullptr, "all"};
  REQUIRE(mulciber_use_adapters(c, generator, 1, &wanted) == MULCIBER_OK);
  CHECK(answer_in_c() == text(kAll));
  REQUIRE(mulciber_use_adapters(c, generator, 0, nullptr) == MULCIBER_OK);
  CHECK(answer_in_c() == text(kNone));
  CHECK(text(kAll) != text(kNone));
  const MulciberAdapter unknown = {sizeof(unknown), 1, nullptr, "other"};
  REQUIRE(mulciber_use_adapters(c, generator, 1, &unknown) == MULCIBER_OK);
  MulciberTask* task = nullptr;
  CHECK(mulciber_begin_generation(c, generator, kLoraPrompt, nullptr, &task) ==
        MULCIBER_ERROR_SETTING);
  CHECK_THAT(session.context.message(), ContainsSubstring("adapter 'other'"));
  CHECK(mulciber_use_adapters(c, generator, 1, &files[0]) == MULCIBER_OK);
  const MulciberAdapter nameless = {sizeof(nameless), 1, all.c_str(), nullptr};
  CHECK(mulciber_use_adapters(c, generator, 1, &nameless) == MULCIBER_ERROR_SETTING);
  mulciber_destroy_generator(generator);
}
