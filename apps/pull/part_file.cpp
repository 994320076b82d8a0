#include "apps/pull/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "mulciber/error.h"

namespace mulciber::apps {

namespace fs = std::filesystem;

PartFile::PartFile(const DownloadRequest& request)
    : path_(request.target.string() + ".part"), note_(path_.string() + ".from"), url_(request.url) {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw ModelError(path_.string(), std::string("cannot be written: ") + std::strerror(errno),
                     "choose another folder with --output");
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    close(file_);
    throw ModelError(path_.string(), "is being fetched by another process", "wait for it");
  }
  std::ifstream in(note_);
  std::string url;
  if (std::getline(in, url) && url == url_) std::getline(in, validator_);
  // Without a validator it is unknown whether the rest belongs to this beginning.
  if (validator_.empty()) truncate();
  size_ = static_cast<std::uint64_t>(lseek(file_, 0, SEEK_END));
}

PartFile::~PartFile() { close(file_); }

void PartFile::truncate() {
  if (ftruncate(file_, 0) != 0) fail();
  lseek(file_, 0, SEEK_SET);
  size_ = 0;
}

void PartFile::begin(const std::string& validator) {
  truncate();
  validator_ = validator;
  std::ofstream(note_, std::ios::trunc) << url_ << '\n' << validator_ << '\n';
}

void PartFile::append(const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(file_, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail();
    bytes += written;
    count -= static_cast<std::size_t>(written);
    size_ += static_cast<std::uint64_t>(written);
  }
}

void PartFile::move_to(const fs::path& target) {
  if (fsync(file_) != 0) fail();
  fs::rename(path_, target);
  discard();
}

void PartFile::discard() {
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::remove(note_, ignored);
}

void PartFile::fail() const {
  throw ModelError(path_.string(), std::string("cannot be written: ") + std::strerror(errno),
                   "is the disk full?");
}

}  // namespace mulciber::apps
