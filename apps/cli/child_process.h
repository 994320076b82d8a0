// A child process that takes lines on standard input and gives lines on descriptor 3. What it or a
// driver in it prints cannot get among those: standard output and error go elsewhere, and only
// their end is kept.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mulciber::apps {

class ChildProcess {
 public:
  static constexpr int kResultDescriptor = 3;

  /// Starts this same program with `arguments`; `input` is fed to it. Throws std::system_error.
  ChildProcess(std::vector<std::string> arguments, std::string input);
  /// Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;

  /// For poll(): -1 once closed. Input wants writing, the others reading.
  int input() const { return input_; }
  int results() const { return results_; }
  int words() const { return words_; }

  /// Writes as much of the input as the pipe takes, and closes it after the last byte.
  void feed();
  /// Whole lines that arrived. At the end of results() it is closed.
  std::vector<std::string> take_lines();
  /// Reads what it printed.
  void take_words();

  void kill();
  /// Waits for its end. "" for exit code 0, else "died of SIGSEGV (Segmentation fault)" or "exited
  /// with code 4", with the last lines it printed.
  std::string wait();
  /// Its exit code after wait(), or -1 when a signal ended it.
  int exit_code() const { return exit_code_; }
  /// The last line it printed.
  std::string last_line() const;

 private:
  pid_t pid_ = -1;
  int input_ = -1, results_ = -1, words_ = -1;
  std::string pending_input_, partial_line_, tail_;
  int exit_code_ = -1;
};

}  // namespace mulciber::apps
