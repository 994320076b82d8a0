// C functions for prompts of conversations, tokens, and images for prompts.
#include "mulciber/c/prompt.h"

#include "capi/completions.h"
#include "capi/handles.h"
#include "capi/images.h"
#include "capi/prompts.h"
#include "capi/result.h"
#include "capi/structures.h"
#include "mulciber/prompt_images.h"

namespace mulciber::c {

std::vector<ChatMessage> chat_messages(uint32_t count, const MulciberChatMessage* messages) {
  std::vector<ChatMessage> result;
  for_each_structure(count, messages, "messages", "MulciberChatMessage",
                     [&](const MulciberChatMessage& message) {
                       ChatMessage& to = result.emplace_back();
                       to.role = &given_to(message.role, "role");
                       to.content = &given_to(message.content, "content");
                       to.images = message.images;
                     });
  return result;
}

std::span<const uint32_t> given_ids(uint32_t count, const uint32_t* ids) {
  if (count == 0) return {};
  return {&given_to(ids, "ids"), count};
}

void give_text(MulciberResult** result, const char** text, std::optional<std::string> found) {
  const auto kept = std::make_shared<std::optional<std::string>>(std::move(found));
  *result = new MulciberResult{kept};
  *text = *kept ? (*kept)->c_str() : nullptr;
}

void give_ids(MulciberResult** result, uint32_t* count, const uint32_t** ids,
              std::vector<uint32_t> found) {
  const auto kept = std::make_shared<std::vector<uint32_t>>(std::move(found));
  *result = new MulciberResult{kept};
  *count = static_cast<uint32_t>(kept->size());
  *ids = kept->data();
}

void clear_text(MulciberResult** result, const char** text, const char* name) {
  given_to(result, "result") = nullptr;
  given_to(text, name) = nullptr;
}

void clear_ids(MulciberResult** result, uint32_t* count, const uint32_t** ids) {
  given_to(result, "result") = nullptr;
  given_to(count, "count") = 0;
  given_to(ids, "ids") = nullptr;
}

}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_chat_prompt(MulciberContext* context, const MulciberGenerator* generator,
                                    uint32_t count, const MulciberChatMessage* messages,
                                    MulciberResult** result, const char** prompt) {
  return guarded(context, [&] {
    clear_text(result, prompt, "prompt");
    const TextGenerator& by = given_to(generator, "generator").generator;
    give_text(result, prompt, by.chat_prompt(chat_messages(count, messages)));
  });
}

MulciberStatus mulciber_tokenize(MulciberContext* context, const MulciberGenerator* generator,
                                 const char* prompt, const MulciberGenerateInfo* from,
                                 MulciberResult** result, uint32_t* count, const uint32_t** ids) {
  return guarded(context, [&] {
    clear_ids(result, count, ids);
    const TextGenerator& by = given_to(generator, "generator").generator;
    given_to(prompt, "prompt");
    const auto info = optional_of_any_version(from, "MulciberGenerateInfo");
    refuse_fields({{info.prompt_id_count > 0, "prompt_ids"}}, "mulciber_tokenize", "leave it out");
    give_ids(result, count, ids, by.tokens(prompt, generate_options(info, {})));
  });
}

MulciberStatus mulciber_detokenize(MulciberContext* context, const MulciberGenerator* generator,
                                   uint32_t count, const uint32_t* ids, MulciberResult** result,
                                   const char** text) {
  return guarded(context, [&] {
    clear_text(result, text, "text");
    const TextGenerator& by = given_to(generator, "generator").generator;
    give_text(result, text, by.text(given_ids(count, ids)));
  });
}

MulciberStatus mulciber_token_text(MulciberContext* context, const MulciberGenerator* generator,
                                   uint32_t id, MulciberResult** result, const char** text) {
  return guarded(context, [&] {
    clear_text(result, text, "text");
    give_text(result, text, given_to(generator, "generator").generator.token_text(id));
  });
}

MulciberStatus mulciber_prepare_image(MulciberContext* context, const MulciberModel* model,
                                      const MulciberImage* image,
                                      MulciberPreparedImage** prepared) {
  return guarded(context, [&] {
    given_to(prepared, "prepared") = nullptr;
    const auto given = of_any_version(image, "MulciberImage");
    if (given.pixels)
      throw SettingError("MulciberImage::pixels", "is given for a prompt", "give rgb");
    *prepared = new MulciberPreparedImage{
        prepare_image(*given_to(model, "model").model, image_in_memory(image))};
  });
}

void mulciber_destroy_prepared_image(MulciberPreparedImage* image) { delete image; }

uint32_t mulciber_image_tokens(const MulciberPreparedImage* image) {
  return image ? embedded_tokens(*image->image) : 0;
}

MulciberStatus mulciber_image_placeholder(MulciberContext* context, const MulciberModel* model,
                                          MulciberResult** result, const char** placeholder) {
  return guarded(context, [&] {
    clear_text(result, placeholder, "placeholder");
    give_text(result, placeholder, image_placeholder(*given_to(model, "model").model));
  });
}
