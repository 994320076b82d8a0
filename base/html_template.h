// Pages of one file: a template with marks, and the data that its script reads.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mulciber {

/// What is put in place of a mark: {{NAME}} in the template becomes `text`.
struct TemplateText {
  std::string_view name;
  std::string text;
};

/// The page with a text in place of every mark. What was put in is not searched for marks, so that
/// data may hold anything. A mark without a text is a mistake of ours: throws std::logic_error with
/// its name.
std::string fill_template(std::string_view page, std::span<const TemplateText> texts);

/// JSON that may stand inside a <script> element: no character that could end the element, open a
/// comment or end a line of script is left as it is. Outside strings JSON has none of these.
std::string json_for_script(std::string_view json);

}  // namespace mulciber
