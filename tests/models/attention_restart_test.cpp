// Attention maps of growing texts: translations under way, and answers of language models.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tests/application_destination.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

const std::string kRestartSentence = "The old house stands near the river.";

/// All maps of a kind, in the layout of AttentionMaps and TokenAttention.
std::vector<float> maps_of(Device& device, AttentionTask& task, AttentionKind kind) {
  const VkExtent2D extent = task.extent(kind);
  const uint64_t size = uint64_t{extent.width} * extent.height;
  const uint32_t heads = task.heads(kind), maps = task.layers(kind) * heads;
  const Destination all(device, maps * size);
  run_commands(device, [&](VkCommandBuffer commands) {
    for (uint32_t map = 0; map < maps; ++map) {
      ApplicationBuffer part = all.buffer;
      part.offset += map * size * sizeof(float);
      part.size = size * sizeof(float);
      task.record_attention(commands, part, {kind, map / heads, map % heads});
    }
  });
  return {all.floats(), all.floats() + maps * size};
}

double largest_weight_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, double{std::abs(a[i] - b[i])});
  return worst;
}

struct Made {
  uint64_t allocations, pipelines;
  explicit Made(Device& device)
      : allocations(device.counters().allocations), pipelines(device.counters().pipelines) {}
  bool operator==(const Made&) const = default;
};

}  // namespace

TEST_CASE("The maps of a translation under way follow it token by token") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, bundled_model());
  const Translation whole = translator.translate(kRestartSentence, {.attention = true});
  TranslationTask translation(translator, kRestartSentence);
  std::optional<AttentionTask> attention;
  std::optional<Made> made;
  uint32_t seen = 0, compared = 0;
  while (!translation.done()) {
    translation.step(300);
    translation.wait();
    if (translation.steps() == seen) continue;
    seen = translation.steps();
    const Translation so_far = translation.so_far();
    if (!attention) {
      attention.emplace(translator, so_far, HeadMasks{}, AttentionRoom{.target = 40});
      made.emplace(*device);
    } else {
      attention->restart(so_far);
    }
    CHECK_FALSE(attention->recorded());
    finish(*attention);
    CHECK(attention->recorded());
    CHECK(Made(*device) == *made);
    const VkExtent2D extent = attention->extent(AttentionKind::kCross);
    CHECK(extent.width == so_far.source_ids.size());
    CHECK(extent.height == so_far.ids.size());
    // A separate task for that text has programs of other lengths, so the last bits may differ.
    if (seen % 4 == 1) {
      AttentionTask alone(translator, so_far);
      finish(alone);
      for (const AttentionKind kind :
           {AttentionKind::kEncoder, AttentionKind::kDecoder, AttentionKind::kCross})
        CHECK(largest_weight_difference(maps_of(*device, *attention, kind),
                                        maps_of(*device, alone, kind)) < 1e-5);
      made.emplace(*device);
      ++compared;
    }
  }
  CHECK(compared > 2);
  CHECK(largest_weight_difference(maps_of(*device, *attention, AttentionKind::kCross),
                                  whole.attention->cross) < 1e-5);
  CHECK(largest_weight_difference(maps_of(*device, *attention, AttentionKind::kDecoder),
                                  whole.attention->decoder) < 1e-5);
}

TEST_CASE(
    "A task of maps serves other texts that it has room for, and begins again when cancelled") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, bundled_model());
  const Translation first = translator.translate("He has two dogs.", {.attention = true}),
                    second = translator.translate(kRestartSentence, {.attention = true});
  const auto source = static_cast<uint32_t>(second.source_ids.size()),
             target = static_cast<uint32_t>(second.ids.size());
  AttentionTask task(translator, first, {}, {.source = source, .target = target});
  task.step(1);
  CHECK_THROWS_AS(task.restart(second), SettingError);  // it is under way
  task.cancel();
  task.wait();
  for (const Translation* each : {&second, &first, &second}) {
    const Made made(*device);
    task.restart(*each);
    finish(task);
    CHECK(Made(*device) == made);
    CHECK(largest_weight_difference(maps_of(*device, task, AttentionKind::kCross),
                                    each->attention->cross) < 1e-5);
    CHECK(largest_weight_difference(maps_of(*device, task, AttentionKind::kEncoder),
                                    each->attention->encoder) < 1e-5);
  }
  Translation longer = second;
  longer.ids.insert(longer.ids.end(), 40, longer.ids.front());
  const auto refused = [&](const auto& text) -> std::string {
    try {
      task.restart(text);
    } catch (const SettingError& error) {
      return error.what();
    }
    return {};
  };
  CHECK(refused(longer).find(std::to_string(longer.ids.size())) != std::string::npos);
  CHECK(refused(Generation{.prompt_ids = {5}}).find("of a translation") != std::string::npos);
  CHECK_THROWS_AS(task.restart(Translation{}), ModelError);
  // A refused restart leaves the task as it was.
  CHECK(task.recorded());
}

TEST_CASE("The maps of an answer are those that generate() keeps, and follow it while it grows") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  TextGenerator generator(device, small_decoder().string(), {.context = 64});
  const std::string prompt = "The red hammer and the blue nails";
  GenerateOptions options = {.max_new_tokens = 12, .ignore_end = true, .attention = true};
  const Generation whole = generator.generate(prompt, options);
  {
    AttentionTask task(generator, whole);
    CHECK(task.layers(AttentionKind::kDecoder) == 3);
    CHECK(task.heads(AttentionKind::kDecoder) == 4);
    CHECK(task.layers(AttentionKind::kCross) == 0);
    CHECK_THROWS_AS(task.extent(AttentionKind::kCross), SettingError);
    finish(task);
    CHECK(maps_of(*device, task, AttentionKind::kDecoder) == whole.attention->weights);
  }
  options.attention = false;
  GenerationTask answer(generator, prompt, options);
  CHECK(answer.so_far().ids.empty());
  CHECK(answer.so_far().prompt_ids == whole.prompt_ids);
  AttentionTask task(generator, answer.so_far(), 64);
  finish(task);
  Made made(*device);
  size_t tokens = 0;
  while (!answer.done()) {
    answer.step(300);
    answer.wait();
    const Generation so_far = answer.so_far();
    if (so_far.ids.size() == tokens) continue;
    tokens = so_far.ids.size();
    CHECK(whole.text.starts_with(so_far.text));
    CHECK(std::equal(so_far.ids.begin(), so_far.ids.end(), whole.ids.begin()));
    task.restart(so_far);
    finish(task);
    CHECK(Made(*device) == made);
    // No token sees a later one: the first rows are those of the whole text.
    const std::vector<float> maps = maps_of(*device, task, AttentionKind::kDecoder);
    made = Made(*device);
    const size_t length = task.extent(AttentionKind::kDecoder).width, all = whole.attention->length;
    REQUIRE(length == so_far.prompt_ids.size() + tokens);
    double worst = 0;
    for (size_t row = 0; row < maps.size() / length; ++row) {
      const size_t map = row / length, query = row % length;
      for (size_t key = 0; key < length; ++key)
        worst = std::max(
            worst, double{std::abs(maps[row * length + key] -
                                   whole.attention->weights[(map * all + query) * all + key])});
    }
    CHECK(worst < 1e-5);
  }
  CHECK(tokens == 12);
  CHECK(answer.result().ids == whole.ids);
  CHECK(answer.so_far().text == whole.text);

  CHECK_THROWS_AS(task.restart(Generation{}), ModelError);
  CHECK_THROWS_AS(task.restart(Generation{.prompt_ids = {1 << 30}}), ModelError);
  CHECK_THROWS_AS(task.restart(Translation{}), SettingError);
  AttentionTask tight(generator, whole);
  CHECK_NOTHROW(finish(tight));
  Generation longer = whole;
  longer.ids.push_back(5);
  CHECK_THROWS_AS(tight.restart(longer), SettingError);
}
