// A child process that takes lines on standard input and gives lines on descriptor 3. Text that it,
// or a driver in it, prints cannot mix with these: standard output and error go to another pipe, of
// which only the end is kept.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mulciber::apps {

class ChildProcess {
 public:
  static constexpr int kResultDescriptor = 3;

  /// Starts this same program with `arguments`, and feeds it `input`. Throws std::system_error.
  ChildProcess(std::vector<std::string> arguments, std::string input);
  /// Kills the child if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;

  /// Descriptors for poll(): -1 once closed. input() is written, the others are read.
  int input() const { return input_; }
  int results() const { return results_; }
  int words() const { return words_; }

  /// Writes as much of the input as the pipe takes, and closes it after the last byte.
  void feed();
  /// Returns the whole lines that have arrived, and closes results() at its end.
  std::vector<std::string> take_lines();
  /// Reads printed text.
  void take_words();

  void kill();
  /// Waits for the child's end. Returns "" for exit code 0, else "died of SIGSEGV (Segmentation
  /// fault)" or "exited with code 4", with the last lines that the child printed.
  std::string wait();
  /// The exit code after wait(), or -1 when a signal ended the child.
  int exit_code() const { return exit_code_; }
  /// The last line that the child printed.
  std::string last_line() const;

 private:
  pid_t pid_ = -1;
  int input_ = -1, results_ = -1, words_ = -1;
  std::string pending_input_, partial_line_, tail_;
  int exit_code_ = -1;
};

}  // namespace mulciber::apps
