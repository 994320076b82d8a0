// Chat templates that are known by name, for files that bring none.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mulciber {

struct KnownTemplate {
  std::string_view name;
  const char* source;
  /// Texts that end an answer, where the vocabulary has no token for them.
  std::span<const char* const> stops;
  bool plain = false;  // a transcript in plain words: its text holds no special tokens
};

/// In the order of their names.
std::span<const KnownTemplate> known_templates();
/// Their names for a message: "chatml, dialogue, ...".
std::string known_template_names();
/// nullptr where there is none of that name.
const KnownTemplate* find_known_template(std::string_view name);

/// The one for models that were not made for conversations.
inline constexpr std::string_view kDialogueTemplate = "dialogue";

}  // namespace mulciber
