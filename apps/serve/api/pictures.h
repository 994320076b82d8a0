// Pictures in the messages of a chat.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/serve/engine/served_model.h"

namespace mulciber::apps::serve {

/// Of a conversation; more are refused.
constexpr size_t kMostPictures = 16;

struct TakenPictures {
  std::string messages_json;  // as chat templates take them
  std::vector<std::shared_ptr<const PreparedPicture>> pictures;
};

/// Pictures out of messages as CompletionRequest::messages_json has them, as the model takes them.
/// field: that errors name. Throws ApiError (400): where the model sees none, and for bytes that
/// are no picture, or a larger one than is read.
TakenPictures take_pictures(const ServedModel& model, const std::string& messages_json,
                            const char* field);

}  // namespace mulciber::apps::serve
