// Images in the messages of a chat.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/serve/engine/served_model.h"

namespace mulciber::apps::serve {

/// Most images of a conversation.
constexpr size_t kMostImages = 16;

struct TakenImages {
  nlohmann::json messages;  // in the form that chat templates take
  std::vector<std::shared_ptr<const PreparedImage>> images;
};

/// Takes the images out of messages in the form of CompletionRequest::messages, and prepares them
/// for the model. field: the name of the field in errors. Throws ApiError (400) where the
/// model sees no images, and for bytes that are no image, or too large an image.
TakenImages take_images(const ServedModel& model, nlohmann::json messages, const char* field);

}  // namespace mulciber::apps::serve
