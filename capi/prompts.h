// Messages, tokens and images of prompts, for generators and batch generators alike.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mulciber/c/prompt.h"
#include "mulciber/text_generator.h"

struct MulciberPreparedImage {
  std::shared_ptr<const mulciber::PreparedImage> image;
};

namespace mulciber::c {

std::vector<ChatMessage> chat_messages(uint32_t count, const MulciberChatMessage* messages);

/// A list of ids; throws SettingError for NULL, unless it is empty.
std::span<const uint32_t> given_ids(uint32_t count, const uint32_t* ids);

/// Give a text, which may be none, or ids as a call's result. find: makes them.
void give_text(MulciberResult** result, const char** text, std::optional<std::string> found);
void give_ids(MulciberResult** result, uint32_t* count, const uint32_t** ids,
              std::vector<uint32_t> found);

/// Sets what such calls give to nothing, before anything can fail.
void clear_text(MulciberResult** result, const char** text, const char* name);
void clear_ids(MulciberResult** result, uint32_t* count, const uint32_t** ids);

}  // namespace mulciber::c
