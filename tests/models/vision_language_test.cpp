// Language models that see images, against transformers in float64: prepared images, prompts,
// logits and answers; and which prompts share cached pages, whatever else is in the batch.
#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "checkpoints/checkpoint.h"
#include "checkpoints/tensor_values.h"
#include "models/families/open_model.h"
#include "models/loading/verify.h"
#include "mulciber/batch_generator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kModels[] = {"llava", "llava_old", "idefics3", "smolvlm"};

std::filesystem::path folder(const std::string& name) {
  return data_dir() / "vision_language" / name;
}

Image image(const std::string& name) { return read_image(folder(name + ".png").string()); }

PreparedImages prepared(const OpenModel& model, const std::vector<std::string>& names) {
  PreparedImages images;
  for (const std::string& name : names) images.push_back(prepare_image(model, image(name)));
  return images;
}

/// A conversation and what transformers made of it.
struct Conversation {
  std::string name, messages, text;
  std::vector<std::string> images;
  std::vector<uint32_t> ids, greedy;
};

std::vector<Conversation> conversations(const std::string& model) {
  std::vector<Conversation> all;
  for (const Json& one : Json::parse(read_file(folder(model) / "prompts.json")))
    all.push_back({one["name"], one["messages"].dump(), one["text"], one["images"], one["ids"],
                   one["greedy"]});
  return all;
}

GeneratorOptions generator_options() { return {.key_values = KeyValueStorage::kF32}; }

struct Answered {
  std::vector<uint32_t> ids, bits;
  size_t prompt_tokens = 0;
  std::string error;
};

/// Answers conversations, each with a number of tokens, in a batch with little memory.
class Batch {
 public:
  explicit Batch(const std::string& model, uint32_t sequences = 1, uint64_t cache_tokens = 0,
                 uint32_t context = 256)
      : files_(open_model(folder(model).string())) {
    BatchGeneratorOptions options;
    options.generator = generator_options();
    options.generator.context = context;
    options.generator.sequences = sequences;
    options.cache_tokens = cache_tokens;
    options.prompt_tokens = 16;
    batch_.emplace(shared_handle(), files_, options);
  }
  BatchGenerator& operator*() { return *batch_; }

  void submit(const std::string& text, const std::vector<std::string>& images, uint32_t tokens,
              Answered& to) {
    BatchRequest request;
    request.prompt = text;
    request.add_special = false;
    request.images = prepared(*files_, images);
    request.max_new_tokens = tokens;
    request.ignore_end = true;
    request.log_probabilities = 0;
    request.on_token = [&to](const BatchToken& token) {
      to.ids.push_back(token.id);
      to.bits.push_back(std::bit_cast<uint32_t>(*token.log_probability));
    };
    request.on_end = [&to](const Generation& made, std::string_view) {
      to.prompt_tokens = made.prompt_ids.size();
    };
    request.on_error = [&to](const std::exception& error) { to.error = error.what(); };
    batch_->submit(std::move(request));
  }
  Answered answer(const std::string& text, const std::vector<std::string>& images,
                  uint32_t tokens = 8) {
    Answered to;
    submit(text, images, tokens, to);
    while (batch_->step()) {
    }
    return to;
  }

 private:
  std::shared_ptr<const OpenModel> files_;
  std::optional<BatchGenerator> batch_;
};

}  // namespace

TEST_CASE("Logits and embeddings of images are those of transformers") {
  for (const char* name : kModels) {
    INFO(name);
    const auto files = open_model(folder(name).string());
    const auto model = load_model(shared_device(), *files);
    const VerifyReport report = verify(*model, folder(name) / "expected.safetensors");
    for (const VerifyResult& result : report.results) {
      INFO(result.case_name << " " << result.tensor << ": " << result.error << " "
                            << result.detail);
      CHECK(result.status == VerifyResult::Status::kPass);
    }
    CHECK(report.results.size() >= 2);
    CHECK(files->capabilities().has(Capability::kSeeImages));
  }
}

TEST_CASE("Images become the pixels that transformers' processors make of them") {
  for (const char* name : kModels) {
    const auto files = open_model(folder(name).string());
    const ImageNormalization& normalization = files->image_prompts()->normalization();
    const Checkpoint expected(folder(name) / "expected.safetensors");
    for (const char* which : {"wide", "high"}) {
      const CheckpointTensor* pixels = expected.find(std::string(which) + "/pixel_values");
      if (!pixels) continue;
      INFO(name << " " << which);
      const std::vector<float> values = read_floats(*pixels, 0, pixels->elements());
      const auto shown = prepare_image(*files, image(which));
      const size_t side = pixels->shape.back(), plane = side * side;
      REQUIRE(values.size() == shown->tiles.size() * 3 * plane);
      double worst = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t tile = i / (3 * plane), channel = i / plane % 3, pixel = i % plane;
        const float byte = shown->tiles[tile]->rgb[pixel * 3 + channel];
        const float mine = byte * normalization.scale[channel] + normalization.shift[channel];
        worst = std::max<double>(worst, std::abs(mine - values[i]));
      }
      CHECK(worst < 1e-6);
    }
  }
}

TEST_CASE("Conversations with images are written and answered as transformers does") {
  for (const char* name : kModels) {
    const auto files = open_model(folder(name).string());
    TextGenerator generator(shared_handle(), files, generator_options());
    Batch batch(name);
    for (const Conversation& asked : conversations(name)) {
      INFO(name << " " << asked.name);
      CHECK(files->chat_template()->render_json(asked.messages) == asked.text);
      GenerateOptions options = {.max_new_tokens = 8, .add_special = false, .ignore_end = true};
      options.images = prepared(*files, asked.images);
      const Generation made = generator.generate(asked.text, options);
      CHECK(made.prompt_ids == asked.ids);
      CHECK(made.ids == asked.greedy);
      const Answered answered = batch.answer(asked.text, asked.images);
      CHECK(answered.ids == asked.greedy);
      CHECK(answered.prompt_tokens == asked.ids.size());
    }
  }
}

TEST_CASE("Prompts share what they begin with only where their images are the same") {
  for (const char* name : {"llava", "smolvlm"}) {
    INFO(name);
    const std::vector<Conversation> asked = conversations(name);
    const std::string& text = asked[0].text;
    REQUIRE(asked[1].text == text);
    Batch batch(name);
    CHECK(batch.answer(text, {"wide"}).ids == asked[0].greedy);
    const uint64_t tiles = (*batch).statistics().images;
    // Another image with the same text reuses only the tokens before the image.
    CHECK(batch.answer(text, {"high"}).ids == asked[1].greedy);
    CHECK((*batch).statistics().reused_tokens == 0);
    CHECK((*batch).statistics().images > tiles);
    // The first conversation again is not computed again, nor is its image embedded again.
    const uint64_t both = (*batch).statistics().images;
    CHECK(batch.answer(text, {"wide"}).ids == asked[0].greedy);
    CHECK((*batch).statistics().reused_tokens >= 32);
    CHECK((*batch).statistics().images == both);

    // In a conversation alone, the next turn reuses the cached tokens; another image does not.
    const auto files = open_model(folder(name).string());
    TextGenerator generator(shared_handle(), files, generator_options());
    GenerateOptions options = {.max_new_tokens = 8, .add_special = false, .ignore_end = true};
    options.images = prepared(*files, {"wide"});
    generator.generate(text, options);
    const std::vector<std::byte> saved = generator.save_cache();
    CHECK(generator.generate(text + " and", options).ids.size() == 8);
    CHECK(generator.statistics().reused_tokens >= 32);
    generator.generate(text, options);
    CHECK(generator.statistics().images == 0);
    options.images = prepared(*files, {"high"});
    CHECK(generator.generate(text, options).ids == asked[1].greedy);
    CHECK(generator.statistics().reused_tokens < 10);
    // A saved cache does not say which image a token belongs to.
    TextGenerator other = generator.conversation();
    other.load_cache(saved);
    CHECK(other.generate(text, options).ids == asked[1].greedy);
    CHECK(other.statistics().reused_tokens < 10);
  }
}

TEST_CASE("Answers about images do not depend on batch composition, pages or times of arrival") {
  std::mt19937 random(3);
  struct Case {
    const char* model;
    uint32_t context, tokens, requests;
    uint64_t cache_tokens;  // few: the latest texts are preempted
  };
  for (const Case& tried : {Case{"llava", 256, 12, 14, 0}, Case{"smolvlm", 256, 12, 14, 0},
                            Case{"llava", 192, 120, 6, 256}}) {
    INFO(tried.model << ", " << tried.cache_tokens << " tokens of cache");
    const std::vector<Conversation> asked = conversations(tried.model);
    std::map<std::string, Answered> alone;
    for (const Conversation& one : asked) {
      Batch batch(tried.model, 3, 0, tried.context);
      alone[one.name] = batch.answer(one.text, one.images, tried.tokens);
    }
    Batch batch(tried.model, 3, tried.cache_tokens, tried.context);
    std::vector<const Conversation*> order;
    std::vector<Answered> answered(tried.requests);
    for (size_t next = 0; next < answered.size() || (*batch).step();) {
      if (next == answered.size()) continue;
      const Conversation& one = asked[random() % asked.size()];
      order.push_back(&one);
      batch.submit(one.text, one.images, tried.tokens, answered[next++]);
      for (size_t steps = random() % 4; steps > 0; --steps) (*batch).step();
    }
    for (size_t i = 0; i < answered.size(); ++i) {
      INFO("request " << i << ", " << order[i]->name);
      CHECK(answered[i].ids == alone[order[i]->name].ids);
      CHECK(answered[i].bits == alone[order[i]->name].bits);
    }
    CHECK((*batch).statistics().reused_tokens > 0);
    CHECK(((*batch).statistics().preemptions > 0) == (tried.cache_tokens > 0));
  }
}

TEST_CASE("What cannot be asked about images is said") {
  const auto files = open_model(folder("llava").string());
  TextGenerator generator(shared_handle(), files, generator_options());
  GenerateOptions options = {.max_new_tokens = 2};
  options.images = prepared(*files, {"wide"});
  CHECK_THROWS_WITH(generator.generate("<image> and <image>", options),
                    ContainsSubstring("has 2 places for images, and 1 is given"));
  options.shift = true;
  CHECK_THROWS_WITH(generator.generate("<image>", options), ContainsSubstring("shift"));
  options.shift = false;
  options.prompt_lookup = 3;
  CHECK(generator.generate("<image>", options).ids.size() == 2);
  options.prompt_lookup = 0;
  const std::string prompts[] = {"<image>"};
  CHECK_THROWS_WITH(generator.generate_all(prompts, options), ContainsSubstring("images"));
  std::atomic<bool> cancel{true};
  options.cancel = &cancel;
  const Generation nothing = generator.generate("<image>", options);
  CHECK(nothing.end == GenerateEnd::kCancelled);
  CHECK(nothing.ids.empty());
  CHECK(generator.statistics().images == 0);
  options.cancel = nullptr;
  // Without a placeholder, images come before the text; without images, the placeholder is a token.
  CHECK(generator.generate("this", options).prompt_ids ==
        generator.generate("<image>\nthis", options).prompt_ids);
  CHECK(generator.generate("<image>", {.max_new_tokens = 2}).prompt_ids.size() < 4);

  const auto blind = open_model(small_decoder().string());
  CHECK(image_placeholder(*blind).empty());
  CHECK_THROWS_WITH(prepare_image(*blind, image("wide")),
                    ContainsSubstring("not one that answers about images"));
  CHECK_THROWS_AS(prepare_image(*files, Image{}), ModelError);
  CHECK_THROWS_AS(prepare_image(*files, Image{2, 2, {1, 2, 3}}), ModelError);
}

TEST_CASE("Templates of texts have a line for each image") {
  const auto files = open_model(folder("llava").string());
  const auto chatml = files->choose_template("chatml");
  std::vector<ChatMessage> messages = {{"user", "And these?"}};
  messages.front().images = 2;
  CHECK_THAT(chatml->render(messages), ContainsSubstring("user\n<image>\n<image>\nAnd these?"));
  CHECK(files->chat_template()->render(messages) ==
        "USER: <image>\n<image>\nAnd these? ASSISTANT:");
}
