#include "apps/serve/api/images.h"

#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/base64.h"
#include "apps/serve/http/api_error.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

constexpr const char* kInvalid = "invalid_image";

std::shared_ptr<const PreparedImage> unpacked(const ServedModel& model, const std::string& url,
                                              const std::string& name, const char* field) {
  // A few bytes may hold many pixels: the server decodes one image at a time, whoever sent it.
  static std::mutex one;
  const std::optional<std::vector<std::byte>> bytes =
      from_base64(std::string_view(url).substr(url.find(',') + 1));
  if (!bytes) refuse(field, name + " is not in base64", kInvalid);
  const std::lock_guard lock(one);
  try {
    return prepare_image(*model.files, decode_image(*bytes, name));
  } catch (const ModelError& error) {
    refuse(field, error.what(), kInvalid);
  }
}

}  // namespace

TakenImages take_images(const ServedModel& model, Json messages, const char* field) {
  TakenImages taken;
  for (Json& message : messages) {
    const auto content = message.find("content");
    if (content == message.end() || !content->is_array()) continue;
    for (Json& part : *content) {
      const auto url = part.find("url");
      if (url == part.end()) continue;
      if (!model.sees)
        refuse(field,
               fmt::format("the model '{}' sees no images: ask one of which /v1/models says so",
                           model.id),
               "model_without_vision");
      if (taken.images.size() == kMostImages)
        refuse(field, fmt::format("a conversation may have {} images at most", kMostImages),
               "too_many_images");
      const std::string name = fmt::format("image {} of {}", taken.images.size() + 1, field);
      taken.images.push_back(unpacked(model, url->get_ref<const std::string&>(), name, field));
      part.erase("url");
    }
  }
  taken.messages = std::move(messages);
  return taken;
}

}  // namespace mulciber::apps::serve
