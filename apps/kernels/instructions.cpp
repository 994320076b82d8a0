#include "apps/kernels/instructions.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace mulciber::apps {

std::vector<Instruction> Program::take() {
  for (const auto& [from, name] : jumps_) {
    const auto found = labels_.find(name);
    if (found != labels_.end() && found->second < code_.size())
      code_[from].targets.push_back(found->second);
  }
  return std::move(code_);
}

bool next_line(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  line = before(text, '\n');
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return true;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string_view next_word(std::string_view& line) {
  line = trimmed(line);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line = trimmed(line.substr(word.size()));
  return word;
}

std::string_view before(std::string_view text, char c) { return text.substr(0, text.find(c)); }

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

int number_in(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

double shape_product(std::string_view name) {
  // Three numbers are separated by one letter each; types before and behind have two letters or
  // more.
  for (size_t at = 0; at < name.size(); ++at) {
    if (std::isdigit(static_cast<unsigned char>(name[at])) == 0) continue;
    double product = 1;
    int factors = 0;
    size_t end = at;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) {
      product *= number_in(name.substr(end));
      ++factors;
      while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
      if (end + 1 < name.size() && contains("xnk", name.substr(end, 1))) ++end;
    }
    if (factors == 3) return product;
    at = end;
  }
  return 0;
}

}  // namespace mulciber::apps
