// Chat templates known by name, for models whose files have none.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mulciber {

struct KnownTemplate {
  std::string_view name;
  const char* source;
  /// Texts that end an answer where the vocabulary has no token for that.
  std::span<const char* const> stops;
  bool plain = false;  // a plain-text transcript without special tokens
};

/// All known templates, sorted by name.
std::span<const KnownTemplate> known_templates();
/// Their names for a message: "chatml, dialogue, ...".
std::string known_template_names();
/// nullptr where there is no template of that name.
const KnownTemplate* find_known_template(std::string_view name);

/// The template for models that were not trained on conversations.
inline constexpr std::string_view kDialogueTemplate = "dialogue";

}  // namespace mulciber
