#include "apps/cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace mulciber::apps {
namespace {

/// The number of a text; NaN where the text is not a number, or not a finite one.
double as_number(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool read = end != text.c_str() && *end == '\0' && std::isfinite(number);
  return read ? number : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Option Option::required() const { return Option(option_->required()); }
Option Option::type_name(const std::string& word) const { return Option(option_->type_name(word)); }
Option Option::group(const std::string& heading) const { return Option(option_->group(heading)); }
Option Option::shows_default() const { return Option(option_->capture_default_str()); }
Option Option::delimiter(char separator) const { return Option(option_->delimiter(separator)); }
Option Option::one_value_each() const { return Option(option_->allow_extra_args(false)); }

Option Option::range(int low, int high) const {
  return Option(option_->check(CLI::Range(low, high)));
}
Option Option::range(double low, double high) const {
  return Option(option_->check(CLI::Range(low, high)));
}
// CLI11's own checks name the largest double in 300 digits.
Option Option::positive() const {
  return check([](const std::string& value) {
    return as_number(value) > 0 ? "" : fmt::format("'{}' is not a number above 0", value);
  });
}
Option Option::not_negative() const {
  return check([](const std::string& value) {
    return as_number(value) >= 0 ? "" : fmt::format("'{}' is not a number from 0 on", value);
  });
}
Option Option::check(std::function<std::string(const std::string&)> problem) const {
  return Option(option_->check(std::move(problem)));
}

Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
bool Option::given() const { return option_->count() > 0; }

Command Command::add_subcommand(const std::string& name, const std::string& help) {
  return Command(*app_->add_subcommand(name, help));
}

template <class Target>
Option Command::add_option(const std::string& names, Target& target, const std::string& help) {
  return Option(app_->add_option(names, target, help));
}

Option Command::add_choice(const std::string& names, const std::map<std::string, int>& words,
                           std::function<void(int)> chosen, const std::string& help) {
  return Option(
      app_->add_option_function<int>(
              names, [chosen = std::move(chosen)](const int& word) { chosen(word); }, help)
          ->transform(CLI::Validator(
              [words](std::string& value) {
                const auto word = words.find(value);
                std::string problem;
                if (word == words.end()) {
                  problem = fmt::format("'{}' is none of", value);
                  for (const auto& [known, number] : words) problem += ' ' + known;
                } else {
                  value = std::to_string(word->second);
                }
                return problem;
              },
              "")));
}

Option Command::add_flag(const std::string& names, bool& target, const std::string& help) {
  return Option(app_->add_flag(names, target, help));
}

Option Command::option(const std::string& name) const { return Option(app_->get_option(name)); }
void Command::remove_option(const std::string& name) {
  app_->remove_option(app_->get_option(name));
}
void Command::footer(const std::string& text) { app_->footer(text); }
void Command::once_parsed(std::function<void()> run) {
  app_->parse_complete_callback(std::move(run));
}
void Command::callback(std::function<void()> run) { app_->callback(std::move(run)); }

CommandLine::CommandLine(const ProgramDescription& program)
    : app_(std::make_unique<CLI::App>(program.description, program.name)), commands_(*app_) {
  app_->set_version_flag("--version", program.version);
  app_->require_subcommand(1);
  app_->failure_message(CLI::FailureMessage::simple);
  app_->footer(program.footer);
}

CommandLine::~CommandLine() = default;

std::optional<bool> CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0;
  }
}

bool CommandLine::chosen_has(const std::string& option) const {
  for (const CLI::App* command : app_->get_subcommands()) {
    if (command->get_option_no_throw(option)) return true;
  }
  return false;
}

template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::uint32_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::uint32_t>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::uint64_t>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::optional<float>&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::uint64_t>&,
                                    const std::string&);

}  // namespace mulciber::apps
