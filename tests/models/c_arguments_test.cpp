// Wrong arguments in C: each is refused with its name, before anything reads it.
#include <string>
#include <utility>
#include <vector>

#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A translation that has ended, and a task for its maps that has not begun to run.
struct MappedText : Session {
  MulciberTranslator* translator = nullptr;
  MulciberTask *translation = nullptr, *attention = nullptr;

  MappedText() : Session(bundled_model()) {
    REQUIRE(mulciber_load_translator(c, device, model, nullptr, &translator) == MULCIBER_OK);
    REQUIRE(mulciber_begin_translation(c, translator, "A dog.", nullptr, &translation) ==
            MULCIBER_OK);
    finish(translation);
    MulciberAttentionInfo info = {sizeof(info)};
    info.translator = translator;
    REQUIRE(mulciber_begin_attention_maps(c, translation, &info, &attention) == MULCIBER_OK);
  }
  ~MappedText() {
    for (MulciberTask* task : {translation, attention}) mulciber_destroy_task(task);
    mulciber_destroy_translator(translator);
  }
  /// The message of a call that must have been refused.
  std::string refused(MulciberStatus status) const {
    CHECK(status == MULCIBER_ERROR_SETTING);
    return status == MULCIBER_OK ? "" : context.message();
  }
};

MulciberTask* begun_embedding(const Session& session, MulciberTextEncoder** encoder) {
  REQUIRE(mulciber_load_text_encoder(session.c, session.device, session.model, nullptr, encoder) ==
          MULCIBER_OK);
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_begin_embedding(session.c, *encoder, "A house.", nullptr, &task) == MULCIBER_OK);
  return task;
}

MulciberTask* begun_image(const Session& session, MulciberImageEncoder** encoder) {
  REQUIRE(mulciber_load_image_encoder(session.c, session.device, session.model, nullptr, encoder) ==
          MULCIBER_OK);
  const std::vector<uint8_t> grey(4 * 4 * 3, 128);
  const MulciberImage image = {sizeof(image), 4, 4, grey.data(), nullptr};
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_begin_image(session.c, *encoder, &image, nullptr, &task) == MULCIBER_OK);
  return task;
}

}  // namespace

TEST_CASE("Vulkan handles that are NULL are refused in C with their names") {
  const MappedText text;
  MulciberContext* c = text.c;
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_begin_translation(c, text.translator, "A dog.", nullptr, &task) == MULCIBER_OK);
  MulciberSlice slice = {sizeof(slice), 7, 7, 7};
  CHECK_THAT(text.refused(mulciber_record(c, task, VK_NULL_HANDLE, 2000, &slice)),
             ContainsSubstring("commands: is NULL"));
  CHECK(slice.number == 0);

  VkSemaphore none = VK_NULL_HANDLE;
  const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  const auto stepped = [&](const MulciberSemaphores& semaphores) {
    MulciberStep step = {sizeof(step)};
    return text.refused(mulciber_step(c, task, 2000, &semaphores, &step));
  };
  MulciberSemaphores semaphores = {sizeof(semaphores)};
  semaphores.signal_count = 1;
  CHECK_THAT(stepped(semaphores), ContainsSubstring("signals: is NULL"));
  semaphores.signals = &none;
  CHECK_THAT(stepped(semaphores), ContainsSubstring("signals: is NULL"));
  semaphores.wait_count = 1;
  CHECK_THAT(stepped(semaphores), ContainsSubstring("waits: is NULL"));
  semaphores.waits = &none;
  semaphores.wait_stages = &stages;
  CHECK_THAT(stepped(semaphores), ContainsSubstring("waits: is NULL"));
  none = reinterpret_cast<VkSemaphore>(&none);  // never read
  semaphores.wait_stages = nullptr;
  CHECK_THAT(stepped(semaphores), ContainsSubstring("wait_stages: is NULL"));
  mulciber_destroy_task(task);

  // Copies look at their handles before they look whether the task has run.
  MulciberApplicationBuffer buffer = {sizeof(buffer)};
  MulciberApplicationImage image = {sizeof(image)};
  const MulciberAttentionMap map = {sizeof(map)};
  CHECK_THAT(text.refused(
                 mulciber_record_attention_image(c, text.attention, VK_NULL_HANDLE, &image, &map)),
             ContainsSubstring("is NULL"));
  ApplicationCommands commands(text.application);
  commands.run([&](VkCommandBuffer recorded) {
    CHECK_THAT(
        text.refused(mulciber_record_attention_image(c, text.attention, recorded, &image, &map)),
        ContainsSubstring("MulciberApplicationImage::image: is NULL"));
    CHECK_THAT(
        text.refused(mulciber_record_attention_buffer(c, text.attention, recorded, &buffer, &map)),
        ContainsSubstring("MulciberApplicationBuffer::buffer: is NULL"));
  });
  buffer.buffer = reinterpret_cast<VkBuffer>(&buffer);  // never read
  CHECK_THAT(text.refused(mulciber_record_attention_buffer(c, text.attention, VK_NULL_HANDLE,
                                                           &buffer, &map)),
             ContainsSubstring("commands: is NULL"));
}

TEST_CASE("Vectors and maps of patches in C are refused without a command buffer") {
  const Session words(small_encoder()), seen(digits());
  MulciberTextEncoder* encoder = nullptr;
  MulciberImageEncoder* eye = nullptr;
  MulciberTask* const text = begun_embedding(words, &encoder);
  MulciberTask* const image = begun_image(seen, &eye);
  MulciberApplicationBuffer buffer = {sizeof(buffer)};
  buffer.buffer = reinterpret_cast<VkBuffer>(&buffer);  // never read
  MulciberApplicationImage texels = {sizeof(texels)};
  texels.image = reinterpret_cast<VkImage>(&texels);  // never read
  const MulciberPatchMap map = {sizeof(map)};
  const auto refused = [](const Session& session, MulciberStatus status) {
    CHECK(status == MULCIBER_ERROR_SETTING);
    CHECK_THAT(session.context.message(), ContainsSubstring("commands: is NULL"));
  };
  for (const auto& [session, task] : {std::pair(&words, text), std::pair(&seen, image)}) {
    refused(*session, mulciber_record_vector(session->c, task, VK_NULL_HANDLE, &buffer));
    refused(*session, mulciber_record_states(session->c, task, VK_NULL_HANDLE, &buffer));
  }
  refused(seen, mulciber_record_patches_buffer(seen.c, image, VK_NULL_HANDLE, &buffer, &map));
  refused(seen, mulciber_record_patches_image(seen.c, image, VK_NULL_HANDLE, &texels, &map));
  for (MulciberTask* task : {text, image}) mulciber_destroy_task(task);
  mulciber_destroy_image_encoder(eye);
  mulciber_destroy_text_encoder(encoder);
}

TEST_CASE("A device in C is refused without its handles") {
  const VulkanApplication application;
  const Lent lent(application);
  const Context context;
  const auto refused = [&](MulciberDeviceInfo info, MulciberStatus status) {
    MulciberDevice* device = nullptr;
    CHECK(mulciber_adopt_device(context.handle, &info, &device) == status);
    CHECK(device == nullptr);
    return context.message();
  };
  MulciberDeviceInfo info = lent.info;
  info.device = VK_NULL_HANDLE;
  CHECK_THAT(refused(info, MULCIBER_ERROR_UNAVAILABLE), ContainsSubstring("the device"));
  info = lent.info;
  info.queue = VK_NULL_HANDLE;
  CHECK_THAT(refused(info, MULCIBER_ERROR_UNAVAILABLE), ContainsSubstring("a queue"));
  MulciberRequirements found = {sizeof(found)};
  for (const int missing : {0, 1, 2}) {
    MulciberPhysicalDevice physical = lent.physical;
    if (missing == 0) physical.instance = VK_NULL_HANDLE;
    if (missing == 1) physical.physical_device = VK_NULL_HANDLE;
    if (missing == 2) physical.get_instance_proc_addr = nullptr;
    info = lent.info;
    info.physical = &physical;
    CHECK_THAT(refused(info, MULCIBER_ERROR_UNAVAILABLE), ContainsSubstring("instance"));
    CHECK(mulciber_query_requirements(context.handle, &physical, nullptr, nullptr, &found) ==
          MULCIBER_ERROR_UNAVAILABLE);
  }
  info = lent.info;
  info.physical = nullptr;
  CHECK_THAT(refused(info, MULCIBER_ERROR_SETTING), ContainsSubstring("is NULL"));
  // Names of extensions are read before anything is made of them.
  const char* const nameless[] = {nullptr};
  info = lent.info;
  info.extension_count = 1;
  for (const char* const* names : {nameless, static_cast<const char* const*>(nullptr)}) {
    info.extensions = names;
    CHECK_THAT(refused(info, MULCIBER_ERROR_SETTING), ContainsSubstring("extensions: is NULL"));
  }
}

TEST_CASE("Numbers that are no enumerators are refused in C with their enumeration") {
  const MappedText text;
  MulciberContext* c = text.c;
  // Nothing is recorded: the task has not run, so no handle is read.
  MulciberApplicationImage image = {sizeof(image)};
  image.image = reinterpret_cast<VkImage>(&image);
  image.format = VK_FORMAT_R32_SFLOAT;
  MulciberApplicationBuffer buffer = {sizeof(buffer)};
  buffer.buffer = reinterpret_cast<VkBuffer>(&buffer);
  MulciberAttentionMap map = {sizeof(map)};
  ApplicationCommands commands(text.application);
  commands.run([&](VkCommandBuffer recorded) {
    const auto to_image = [&] {
      return text.refused(
          mulciber_record_attention_image(c, text.attention, recorded, &image, &map));
    };
    for (const int value : {3, 9, 0x7fffffff}) {
      const auto kind = static_cast<MulciberAttentionKind>(value);
      const auto named =
          ContainsSubstring("is " + std::to_string(value) + "; give one of MulciberAttentionKind");
      CHECK(mulciber_attention_layers(text.attention, kind) == 0);
      CHECK(mulciber_attention_heads(text.attention, kind) == 0);
      VkExtent2D extent = {7, 7};
      CHECK_THAT(text.refused(mulciber_attention_extent(c, text.attention, kind, &extent)), named);
      CHECK(extent.width == 0);
      map.kind = kind;
      CHECK_THAT(to_image(), named);
      CHECK_THAT(text.refused(
                     mulciber_record_attention_buffer(c, text.attention, recorded, &buffer, &map)),
                 named);
    }
    map.kind = MULCIBER_ATTENTION_CROSS;
    for (const int value : {9, 999999999, 0x7fffffff}) {
      const auto named =
          ContainsSubstring("is " + std::to_string(value) + "; give one of VkImageLayout");
      image.layout = static_cast<VkImageLayout>(value);
      CHECK_THAT(to_image(), ContainsSubstring("Image::layout") && named);
      image.layout = VK_IMAGE_LAYOUT_PREINITIALIZED;
      image.final_layout = static_cast<VkImageLayout>(value);
      CHECK_THAT(to_image(), ContainsSubstring("Image::final_layout") && named);
    }
    image.final_layout = VK_IMAGE_LAYOUT_PREINITIALIZED;
    CHECK_THAT(to_image(), ContainsSubstring("final_layout: is VK_IMAGE_LAYOUT_PREINITIALIZED"));
    // Layouts of extensions pass, and the next reason is that the task has not run.
    image.final_layout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR;
    CHECK_THAT(to_image(), !ContainsSubstring("layout"));
  });
  for (const int value : {4, 0x7fffffff}) {
    MulciberGrammar* grammar = nullptr;
    const auto kind = static_cast<MulciberGrammarKind>(value);
    CHECK_THAT(text.refused(mulciber_make_grammar(c, kind, "a", &grammar)),
               ContainsSubstring("give one of MulciberGrammarKind"));
    CHECK(grammar == nullptr);
  }
}

TEST_CASE("A function in C that is given another kind of task names the kind and what it lacks") {
  const MappedText pair;
  const Session words(small_encoder()), seen(digits()), told(small_decoder().string());
  MulciberTextEncoder* encoder = nullptr;
  MulciberImageEncoder* eye = nullptr;
  MulciberGenerator* generator = nullptr;
  MulciberTask* const embedding = begun_embedding(words, &encoder);
  MulciberTask* const image = begun_image(seen, &eye);
  MulciberTask *completion = nullptr, *task = nullptr;
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 32;
  REQUIRE(mulciber_load_generator(told.c, told.device, told.model, &load, &generator) ==
          MULCIBER_OK);
  REQUIRE(mulciber_begin_generation(told.c, generator, "The red", nullptr, &completion) ==
          MULCIBER_OK);
  const Context context;
  MulciberContext* c = context.handle;
  const auto lacks = [&](MulciberStatus status, const std::string& kind, const std::string& what) {
    INFO(kind << ": " << what);
    CHECK(status == MULCIBER_ERROR_SETTING);
    CHECK_THAT(context.message(), ContainsSubstring("task: computes " + kind + ", and has no " +
                                                    what + "; give one of mulciber_begin_"));
  };
  const std::string of_pair = "a translation", of_completion = "a completion",
                    of_maps = "attention maps", of_text = "the embedding of a text",
                    of_image = "the embedding of an image";

  const char* text = nullptr;
  MulciberText known = {sizeof(known)};
  const MulciberAttentionInfo info = {sizeof(info), 0, 0, nullptr, nullptr};
  for (const auto& [of, kind] : {std::pair(pair.attention, of_maps), std::pair(embedding, of_text),
                                 std::pair(image, of_image)}) {
    lacks(mulciber_text(c, of, &text), kind, "text");
    lacks(mulciber_so_far(c, of, &known), kind, "text");
    lacks(mulciber_begin_attention_maps(c, of, &info, &task), kind, "text");
    lacks(mulciber_restart_attention(c, pair.attention, of), kind, "text");
  }
  uint32_t count = 0;
  const MulciberBeam* beams = nullptr;
  for (const auto& [of, kind] :
       {std::pair(completion, of_completion), std::pair(embedding, of_text),
        std::pair(pair.attention, of_maps), std::pair(image, of_image)})
    lacks(mulciber_beams(c, of, &count, &beams), kind, "beams");
  VkExtent2D extent;
  for (const auto& [of, kind] :
       {std::pair(pair.translation, of_pair), std::pair(completion, of_completion),
        std::pair(embedding, of_text), std::pair(image, of_image)}) {
    lacks(mulciber_attention_extent(c, of, MULCIBER_ATTENTION_CROSS, &extent), kind, of_maps);
    lacks(mulciber_restart_attention(c, of, pair.translation), kind, of_maps);
    lacks(mulciber_record_attention_image(c, of, VK_NULL_HANDLE, nullptr, nullptr), kind, of_maps);
    lacks(mulciber_record_attention_buffer(c, of, VK_NULL_HANDLE, nullptr, nullptr), kind, of_maps);
  }
  float vector = 0;
  MulciberImageReport report = {sizeof(report)};
  for (const auto& [of, kind] :
       {std::pair(pair.translation, of_pair), std::pair(completion, of_completion),
        std::pair(pair.attention, of_maps)}) {
    lacks(mulciber_vector(c, of, &vector), kind, "embedding");
    lacks(mulciber_record_vector(c, of, VK_NULL_HANDLE, nullptr), kind, "embedding");
    lacks(mulciber_record_states(c, of, VK_NULL_HANDLE, nullptr), kind, "embedding");
    lacks(mulciber_describe_image(c, of, &report), kind, "patches");
    lacks(mulciber_record_patches_image(c, of, VK_NULL_HANDLE, nullptr, nullptr), kind, "patches");
    lacks(mulciber_record_patches_buffer(c, of, VK_NULL_HANDLE, nullptr, nullptr), kind, "patches");
  }
  lacks(mulciber_describe_image(c, embedding, &report), of_text, "patches");

  for (MulciberTask* each : {embedding, image, completion}) mulciber_destroy_task(each);
  mulciber_destroy_generator(generator);
  mulciber_destroy_image_encoder(eye);
  mulciber_destroy_text_encoder(encoder);
}
