// Pictures in the messages of a chat.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/serve/engine/served_model.h"

namespace mulciber::apps::serve {

/// Of a conversation; more are refused.
constexpr size_t kMostPictures = 16;

struct TakenPictures {
  nlohmann::json messages;  // as chat templates take them
  std::vector<std::shared_ptr<const PreparedPicture>> pictures;
};

/// The pictures of CompletionRequest::messages, as the model takes them, and messages without them.
/// field: that errors name. Throws ApiError (400): where the model sees none, and for bytes that
/// are no picture, or a larger one than is read.
TakenPictures take_pictures(const ServedModel& model, const nlohmann::json& messages,
                            const char* field);

}  // namespace mulciber::apps::serve
