// A subcommand's options. Only options.cpp includes their parser, CLI11, whose templates would take
// seconds to compile in every file that included them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mulciber::apps {

/// An option that was added to a command; its functions, which can be chained, set its properties.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required() const;
  /// The word for the value in --help.
  Option type_name(const std::string& word) const;
  /// The heading in --help; "" hides the option.
  Option group(const std::string& heading) const;
  /// Shows the variable's present value in --help.
  Option shows_default() const;
  /// The separator of several values in one argument.
  Option delimiter(char separator) const;
  /// Each value needs the option again: the option does not take the next argument.
  Option one_value_each() const;

  Option range(int low, int high) const;
  Option range(double low, double high) const;
  Option positive() const;
  Option not_negative() const;
  /// problem: returns what is wrong with a value, or "".
  Option check(std::function<std::string(const std::string&)> problem) const;

  Option needs(Option other) const;
  Option excludes(Option other) const;
  /// Whether the command line has the option, after it was parsed.
  bool given() const;

 private:
  friend class Command;
  CLI::Option* option_;
};

/// A command, or the whole program with its subcommands. Variables that options write to must
/// outlive the parsing.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  Command add_subcommand(const std::string& name, const std::string& help);
  /// names: "-m,--model"; without a dash, the option is positional. The end of options.cpp lists
  /// the types that Target may be.
  template <class Target>
  Option add_option(const std::string& names, Target& target, const std::string& help);
  /// Adds an option whose value is one of these words; `chosen` gets the word's number.
  Option add_choice(const std::string& names, const std::map<std::string, int>& words,
                    std::function<void(int)> chosen, const std::string& help);
  Option add_flag(const std::string& names, bool& target, const std::string& help = {});
  Option option(const std::string& name) const;
  void remove_option(const std::string& name);

  /// Text at the end of --help.
  void footer(const std::string& text);
  /// Called as soon as this command's own options are parsed.
  void once_parsed(std::function<void()> run);
  /// Called when the command line names this command, after all of it was parsed.
  void callback(std::function<void()> run);

 private:
  CLI::App* app_;
};

/// The program's description, and the output of --version.
struct ProgramDescription {
  std::string description, name;
  std::function<std::string()> version;
  std::string footer;
};

/// The program's command line: commands are added to it, then it is parsed.
class CommandLine {
 public:
  explicit CommandLine(const ProgramDescription& program);
  ~CommandLine();

  Command& commands() { return commands_; }
  /// Parses, and runs the callback of the command that was named. No value where that was done;
  /// otherwise --help, --version or an error was printed, and the value is whether the command line
  /// was understood.
  std::optional<bool> parse(int argc, char** argv);
  /// Whether the named command has such an option.
  bool chosen_has(const std::string& option) const;

 private:
  std::unique_ptr<CLI::App> app_;
  Command commands_;
};

}  // namespace mulciber::apps
