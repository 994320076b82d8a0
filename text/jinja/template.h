// Jinja templates: the part of the language that chat templates of models use.
//
// The results equal those of Hugging Face transformers (jinja2 with ImmutableSandboxedEnvironment,
// trim_blocks, lstrip_blocks, loop controls, the generation tag, and its own tojson,
// raise_exception and strftime_now). Missing, with an error where a template uses it: inheritance
// and inclusion, recursive loops, filters that make HTML of text, whole numbers beyond 64 bits.
// Sources: the Jinja 3.1 documentation, and transformers' apply_chat_template.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace mulciber::jinja {

/// Immutable after construction; safe to use from several threads.
class Template {
 public:
  /// where: names the template in errors. Throws ModelError with the line where it cannot be read.
  Template(std::string_view source, std::string where);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  using Variables = std::vector<std::pair<std::string, Value>>;
  /// Throws ModelError with the line: for an error that the template itself raises, for a mistake
  /// in it, or for exceeding the limits.
  std::string render(Variables variables, const std::optional<std::tm>& now = {},
                     const Limits& limits = {}) const;

 private:
  struct Tree;
  std::string where_;
  std::unique_ptr<const Tree> tree_;
};

}  // namespace mulciber::jinja
