#include "base/html_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace mulciber {

std::string fill_template(std::string_view page, std::span<const TemplateText> texts) {
  std::string out;
  for (std::size_t at; (at = page.find("{{")) != std::string_view::npos;) {
    out += page.substr(0, at);
    const std::size_t end = page.find("}}", at);
    const std::string_view name = page.substr(at + 2, end - at - 2);
    const auto found = std::ranges::find(texts, name, &TemplateText::name);
    if (found == texts.end())
      throw std::logic_error(fmt::format("no text for the mark {} of a page", name));
    out += found->text;
    page = page.substr(end + 2);
  }
  out += page;
  return out;
}

std::string json_for_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const std::string_view three = json.substr(i, 3);
    if (c == '<' || c == '>' || c == '&') {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else if (three == "\xE2\x80\xA8" || three == "\xE2\x80\xA9") {  // U+2028, U+2029
      out += three == "\xE2\x80\xA8" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace mulciber
