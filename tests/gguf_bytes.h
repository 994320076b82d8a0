// GGUF files that tests make, byte by byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "checkpoints/gguf.h"
#include "tests/support.h"

namespace mulciber::tests {

/// Builds a valid or invalid GGUF file.
class GgufBytes {
 public:
  explicit GgufBytes(uint32_t version = 3) { raw("GGUF", 4).number(version); }

  template <typename T>
  GgufBytes& number(T value) {
    return raw(&value, sizeof(value));
  }
  GgufBytes& raw(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  GgufBytes& text(const std::string& value) {
    return number<uint64_t>(value.size()).raw(value.data(), value.size());
  }
  GgufBytes& counts(uint64_t tensors, uint64_t values) { return number(tensors).number(values); }
  GgufBytes& key(const std::string& name, GgufType type) {
    return text(name).number(static_cast<uint32_t>(type));
  }
  GgufBytes& tensor(const std::string& name, std::vector<uint64_t> inner_first, uint32_t type,
                    uint64_t offset) {
    text(name).number(static_cast<uint32_t>(inner_first.size()));
    for (uint64_t n : inner_first) number(n);
    return number(type).number(offset);
  }
  GgufBytes& align() {
    bytes_.resize((bytes_.size() + 31) / 32 * 32);
    return *this;
  }
  GgufBytes& data(size_t size) {
    align();
    bytes_.append(size, '\1');
    return *this;
  }

  std::filesystem::path write() const {
    const auto path = folder_.path() / "made.gguf";
    std::ofstream(path, std::ios::binary) << bytes_;
    return path;
  }

 private:
  std::string bytes_;
  TemporaryFolder folder_;
};

}  // namespace mulciber::tests
