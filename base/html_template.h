// Single-file HTML pages: a template with placeholders, and the data that its script reads.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mulciber {

/// A text for a placeholder: {{NAME}} in the template becomes `text`.
struct TemplateText {
  std::string_view name;
  std::string text;
};

/// Returns the page with a text in place of every placeholder. Inserted texts are not searched for
/// placeholders, so that data may hold anything. A placeholder without a text is a mistake of ours:
/// throws std::logic_error with its name.
std::string fill_template(std::string_view page, std::span<const TemplateText> texts);

/// Escapes JSON for a <script> element: every character that could end the element, open a comment
/// or end a line of script. Outside its strings JSON has none of these.
std::string json_for_script(std::string_view json);

}  // namespace mulciber
