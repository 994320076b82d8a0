#include "apps/cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

extern char** environ;

namespace mulciber::apps {
namespace {

constexpr size_t kTailBytes = 1500;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// A pipe whose ends no other child inherits. Their descriptors are above those that a child is
/// given.
struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe(ends) != 0) fail("pipe");
    read = fcntl(ends[0], F_DUPFD_CLOEXEC, 10);
    write = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
    close(ends[0]);
    close(ends[1]);
    if (read < 0 || write < 0) fail("pipe");
  }
};

void close_end(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

// The path of this program's file. Where the file was replaced while the program ran, the kernel's
// link still leads to the old one.
std::string own_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error && std::filesystem::exists(path, error)) return path.string();
  return "/proc/self/exe";
}

const char* signal_name(int number) {
  switch (number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGABRT: return "SIGABRT";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    case SIGTRAP: return "SIGTRAP";
    case SIGKILL: return "SIGKILL";
    case SIGTERM: return "SIGTERM";
    default: return "a signal";
  }
}

/// Reads the available bytes. Returns false at the end.
bool read_some(int descriptor, std::string& into) {
  char bytes[65536];
  const ssize_t count = read(descriptor, bytes, sizeof bytes);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  into.append(bytes, static_cast<size_t>(count));
  return count > 0;
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> arguments, std::string input)
    : pending_input_(std::move(input)) {
  Pipe in, out, words;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, words.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, words.write, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write, kResultDescriptor);
  const std::string path = own_path();
  std::vector<char*> argv = {const_cast<char*>("mulciber")};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int error = posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close_end(in.read);
  close_end(out.write);
  close_end(words.write);
  input_ = in.write;
  results_ = out.read;
  words_ = words.read;
  for (int descriptor : {input_, results_, words_}) fcntl(descriptor, F_SETFL, O_NONBLOCK);
  if (error != 0) {
    pid_ = -1;
    for (int* descriptor : {&input_, &results_, &words_}) close_end(*descriptor);
    errno = error;
    fail(path.c_str());
  }
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill();
    waitpid(pid_, nullptr, 0);
  }
  for (int* descriptor : {&input_, &results_, &words_}) close_end(*descriptor);
}

void ChildProcess::feed() {
  const ssize_t count = write(input_, pending_input_.data(), pending_input_.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // The child may have died without reading; its end is noticed elsewhere.
  if (count < 0)
    pending_input_.clear();
  else
    pending_input_.erase(0, static_cast<size_t>(count));
  if (pending_input_.empty()) close_end(input_);
}

std::vector<std::string> ChildProcess::take_lines() {
  if (!read_some(results_, partial_line_)) close_end(results_);
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = partial_line_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(partial_line_.substr(begin, end - begin));
  }
  partial_line_.erase(0, begin);
  return lines;
}

void ChildProcess::take_words() {
  if (!read_some(words_, tail_)) close_end(words_);
  if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
}

void ChildProcess::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

std::string ChildProcess::last_line() const {
  const size_t end = tail_.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const size_t begin = tail_.find_last_of('\n', end);
  return tail_.substr(begin == std::string::npos ? 0 : begin + 1,
                      end + 1 - (begin == std::string::npos ? 0 : begin + 1));
}

std::string ChildProcess::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  // The reads do not block: a grandchild may hold the pipe open.
  for (size_t before = SIZE_MAX; words_ >= 0 && tail_.size() != before;) {
    before = tail_.size();
    take_words();
  }
  std::string words;
  if (WIFSIGNALED(status)) {
    exit_code_ = -1;
    const int number = WTERMSIG(status);
    words = fmt::format("died of {} ({})", signal_name(number), strsignal(number));
  } else {
    exit_code_ = WEXITSTATUS(status);
    if (exit_code_ == 0) return "";
    words = fmt::format("exited with code {}", exit_code_);
  }
  if (tail_.find_first_not_of(" \r\n") != std::string::npos) words += ", having printed: " + tail_;
  while (words.ends_with('\n')) words.pop_back();
  return words;
}

}  // namespace mulciber::apps
