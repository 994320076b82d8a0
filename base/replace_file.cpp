#include "base/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace mulciber {
namespace {

std::string cannot(int reason) {
  return fmt::format("cannot be written: {}", std::strerror(reason));
}

// 0, or the error's number.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

}  // namespace

std::string replace_file(const std::filesystem::path& file, std::string_view bytes) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path target =
      fs::is_symlink(file, ignored) ? fs::weakly_canonical(file, ignored) : file;
  struct stat old {};
  const bool exists = stat(target.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) return "is there already and is not a regular file";
  if (exists && access(target.c_str(), W_OK) != 0) return cannot(errno);

  // The temporary file lies beside the target, so that the rename stays on one file system, and has
  // a name of this call alone.
  static std::atomic<unsigned> calls{0};
  const fs::path temporary =
      target.parent_path() /
      fmt::format(".{}.{}.{}.part", target.filename().string(), getpid(), calls++);
  const int out = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (out < 0) return cannot(errno);
  int reason = write_all(out, bytes);
  if (exists && reason == 0 && fchmod(out, old.st_mode & 07777) != 0) reason = errno;
  // Some file systems report a full disk only here.
  if (fsync(out) != 0 && reason == 0 && errno != EINVAL) reason = errno;
  if (close(out) != 0 && reason == 0) reason = errno;
  if (reason == 0 && rename(temporary.c_str(), target.c_str()) != 0) reason = errno;
  if (reason == 0) return {};
  unlink(temporary.c_str());
  return cannot(reason);
}

}  // namespace mulciber
