#include "checkpoints/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "mulciber/error.h"

namespace mulciber {
namespace {

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

std::function<void(const std::filesystem::path&)>& watcher() {
  static std::function<void(const std::filesystem::path&)> function;
  return function;
}

std::string reason(int code) { return std::generic_category().message(code); }

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  if (watcher()) watcher()(path);
  // O_NONBLOCK: a named pipe at this path must be refused below, not waited for.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0)
    throw ModelError(path.string(), "cannot be opened: " + reason(errno),
                     "check the path and its permissions");
  struct stat info {};
  if (::fstat(file.value, &info) != 0)
    throw ModelError(path.string(), "cannot be examined: " + reason(errno), {});
  if (!S_ISREG(info.st_mode))
    throw ModelError(
        path.string(),
        S_ISDIR(info.st_mode) ? "is a folder, a file is expected" : "is not a regular file",
        "check the path");
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (data == MAP_FAILED)
    throw ModelError(path.string(),
                     "cannot be mapped (" + std::to_string(size_) + " bytes): " + reason(errno),
                     {});
  data_ = static_cast<const std::byte*>(data);
}

void watch_mapped_files(std::function<void(const std::filesystem::path&)> function) {
  watcher() = std::move(function);
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  // Pages that also hold other tensors are read again from the mapped file when they are needed.
  const std::uintptr_t first = begin / page * page,
                       end = (begin + bytes.size() + page - 1) / page * page;
  // If this fails, more memory stays in use, nothing else.
  if (!bytes.empty()) (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace mulciber
