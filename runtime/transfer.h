// Copies between host and device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/tensor.h"

namespace mulciber {

class Device;

/// Copies host bytes into device memory through a bounded staging ring, or straight into memory the
/// host can see. Copies are complete on the device when finish() returns.
class Uploader {
 public:
  explicit Uploader(Device& device);
  ~Uploader();
  /// Throws ShapeError when `bytes` is larger than the range.
  void copy(const BufferView& to, std::span<const std::byte> bytes);
  void finish();

 private:
  struct Ring;
  Device& device_;
  std::unique_ptr<Ring> ring_;  // made on first need
};

/// Reads a range back; waits for the copy only (call after the work that wrote it was waited for).
std::vector<std::byte> download(Device& device, const BufferView& from);
template <typename T>
std::vector<T> download_as(Device& device, const BufferView& from);
extern template std::vector<float> download_as<float>(Device&, const BufferView&);
extern template std::vector<uint32_t> download_as<uint32_t>(Device&, const BufferView&);

/// Writes a range; waits until the device sees it.
void upload(Device& device, const BufferView& to, std::span<const std::byte> bytes);

}  // namespace mulciber
