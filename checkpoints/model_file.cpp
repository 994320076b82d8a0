#include "checkpoints/model_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "checkpoints/mapped_file.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Bound of the header of a file behind a function, which stays in memory. A vocabulary of 262,144
// pieces takes 7 MB.
constexpr std::uint64_t kMostFirst = 256ull << 20;
constexpr std::uint64_t kFirstStep = 16 << 10;

class MappedBytes : public FileBytes {
 public:
  explicit MappedBytes(const std::filesystem::path& path) : file_(path) { all_ = file_.bytes(); }
  void release(std::span<const std::byte> part) const override { release_pages(part); }

 private:
  MappedFile file_;
};

class LentBytes : public FileBytes {
 public:
  explicit LentBytes(std::span<const std::byte> bytes) { all_ = bytes; }
};

/// Reserves addresses for a whole file, with memory only for its first bytes: headers are read once
/// and used for as long as the model is open; tensors are read piece by piece. Code that reads a
/// tensor at its address instead causes a fault.
class ReadBytes : public FileBytes {
 public:
  ReadBytes(std::string where, const LentFile& file) : where_(std::move(where)), read_(file.read) {
    if (file.size == 0) return;
    void* reserved = MAP_FAILED;
    if (file.size <= SIZE_MAX / 2)
      reserved =
          ::mmap(nullptr, file.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
      throw ModelError(where_,
                       "has " + std::to_string(file.size) +
                           " bytes as the application says, for which there is no address space",
                       "check the size that was given");
    all_ = {static_cast<const std::byte*>(reserved), static_cast<std::size_t>(file.size)};
  }
  ~ReadBytes() override {
    if (!all_.empty()) ::munmap(writable(), all_.size());
  }
  ReadBytes(const ReadBytes&) = delete;
  ReadBytes& operator=(const ReadBytes&) = delete;

  bool in_memory() const override { return false; }

  void fetch_first(std::uint64_t count) override {
    if (count <= fetched_) return;
    if (count > kMostFirst)
      throw ModelError(where_, "has a header of more than " + std::to_string(kMostFirst) + " bytes",
                       "no known model needs that many");
    // Reads more than was asked for, so that a header of many values takes few calls.
    const std::uint64_t whole = (count + kFirstStep - 1) / kFirstStep * kFirstStep;
    const std::uint64_t end = std::min<std::uint64_t>(whole, all_.size());
    if (::mprotect(writable(), end, PROT_READ | PROT_WRITE) != 0)
      throw ModelError(where_,
                       "has a header of " + std::to_string(count) + " bytes, for which there is " +
                           "no memory: " + std::generic_category().message(errno),
                       {});
    fill(fetched_, {writable() + fetched_, static_cast<std::size_t>(end - fetched_)});
    fetched_ = end;
  }

  std::span<const std::byte> read(std::span<const std::byte> part,
                                  std::vector<std::byte>& scratch) const override {
    const auto offset = static_cast<std::uint64_t>(part.data() - all_.data());
    if (part.empty() || offset + part.size() <= fetched_) return part;
    scratch.resize(part.size());
    fill(offset, scratch);
    return scratch;
  }

 private:
  std::byte* writable() const { return const_cast<std::byte*>(all_.data()); }

  void fill(std::uint64_t offset, std::span<std::byte> into) const {
    while (!into.empty()) {
      const auto wanted = into.first(std::min(into.size(), kMostLentRead));
      const std::size_t given = read_(offset, wanted);
      if (given != wanted.size())
        throw ModelError(where_,
                         "the application's function gave " + std::to_string(given) + " of " +
                             std::to_string(wanted.size()) + " bytes at byte " +
                             std::to_string(offset) + " of " + std::to_string(all_.size()),
                         "it must give all that it is asked for, within the size that was given");
      offset += given;
      into = into.subspan(given);
    }
  }

  std::string where_;
  std::function<std::size_t(std::uint64_t, std::span<std::byte>)> read_;
  std::uint64_t fetched_ = 0;
};

std::shared_ptr<FileBytes> bytes_of(const std::filesystem::path& path, const LentFile& file) {
  if (file.read) return std::make_shared<ReadBytes>(path.string(), file);
  return std::make_shared<LentBytes>(file.bytes);
}

}  // namespace

void FileBytes::fetch_first(std::uint64_t) {}
void FileBytes::release(std::span<const std::byte>) const {}
std::span<const std::byte> FileBytes::read(std::span<const std::byte> part,
                                           std::vector<std::byte>&) const {
  return part;
}

ModelFile::ModelFile(const std::filesystem::path& path)
    : path_(path), bytes_(std::make_shared<MappedBytes>(path)) {}

ModelFile::ModelFile(const std::filesystem::path& path, const LentFile& file)
    : path_(path), bytes_(bytes_of(path, file)) {}

std::string_view ModelFile::whole(std::vector<std::byte>& scratch, std::uint64_t most) const {
  if (!bytes_->in_memory() && size() > most)
    throw ModelError(path_.string(),
                     "has " + std::to_string(size()) + " bytes, where at most " +
                         std::to_string(most) + " are read",
                     "check the size that was given");
  const auto bytes = bytes_->read(bytes_->all(), scratch);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace mulciber
