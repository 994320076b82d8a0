// Attention maps in C: they are those of C++.
#include <algorithm>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;

TEST_CASE("Attention maps in C go into a buffer of the application's as C++ gives them") {
  const Session session(bundled_model());
  MulciberContext* c = session.c;
  MulciberTranslator* translator = nullptr;
  MulciberTask *translation = nullptr, *attention = nullptr;
  REQUIRE(mulciber_load_translator(c, session.device, session.model, nullptr, &translator) ==
          MULCIBER_OK);
  const char* text = "The old house stands near the river.";
  REQUIRE(mulciber_begin_translation(c, translator, text, nullptr, &translation) == MULCIBER_OK);
  session.finish(translation);
  MulciberAttentionInfo info = {sizeof(info)};
  CHECK(mulciber_begin_attention_maps(c, translation, &info, &attention) ==
        MULCIBER_ERROR_SETTING);  // no translator
  info.translator = translator;
  REQUIRE(mulciber_begin_attention_maps(c, translation, &info, &attention) == MULCIBER_OK);
  CHECK_FALSE(mulciber_is_recorded(translation));
  mulciber_destroy_task(translation);
  CHECK_FALSE(mulciber_is_recorded(attention));
  session.finish(attention);
  CHECK(mulciber_is_recorded(attention));
  VkExtent2D extent;
  REQUIRE(mulciber_attention_extent(c, attention, MULCIBER_ATTENTION_CROSS, &extent) ==
          MULCIBER_OK);

  const auto adopted = adopt_device(session.application.lent());
  Translator same(adopted, bundled_model());
  const AttentionMaps maps = *same.translate(text, {.attention = true}).attention;
  const size_t count = size_t{extent.width} * extent.height;
  REQUIRE(count == size_t{maps.source_length} * maps.target_length);
  const Buffer memory = adopted->memory().allocate(count * 4, MemoryUsage::kReadback);
  MulciberApplicationBuffer buffer = {sizeof(buffer)};
  buffer.buffer = memory.view().buffer;
  buffer.offset = memory.view().offset;
  buffer.bytes = count * 4;
  buffer.stages = VK_PIPELINE_STAGE_HOST_BIT;
  buffer.accesses = VK_ACCESS_HOST_READ_BIT;
  MulciberAttentionMap map = {sizeof(map), MULCIBER_ATTENTION_CROSS, 1, 2};
  ApplicationCommands commands(session.application);
  commands.run([&](VkCommandBuffer recorded) {
    CHECK(mulciber_record_attention_buffer(c, attention, recorded, &buffer, &map) == MULCIBER_OK);
    map.layer = 99;
    CHECK(mulciber_record_attention_buffer(c, attention, recorded, &buffer, &map) ==
          MULCIBER_ERROR_SETTING);
    MulciberApplicationImage image = {sizeof(image)};
    image.format = VK_FORMAT_R8G8B8A8_UNORM;
    map.layer = 1;
    CHECK(mulciber_record_attention_image(c, attention, recorded, &image, &map) ==
          MULCIBER_ERROR_SETTING);
  });
  const auto* found = reinterpret_cast<const float*>(memory.view().mapped);
  const size_t first = (size_t{1} * maps.cross_heads + 2) * count;
  CHECK(std::equal(found, found + count, maps.cross.begin() + static_cast<ptrdiff_t>(first)));
  const char* words = nullptr;
  CHECK(mulciber_text(c, attention, &words) == MULCIBER_ERROR_SETTING);
  mulciber_destroy_task(attention);
  mulciber_destroy_translator(translator);
}
