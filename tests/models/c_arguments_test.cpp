// Wrong arguments in C: each is refused with its name, before anything reads it.
#include <string>

#include "tests/c_session.h"
#include "tests/catch.h"
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

}  // namespace

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
