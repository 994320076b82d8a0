// Copies between CPU and device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/tensor.h"

namespace mulciber {

class Device;

/// Copies bytes into device memory through a bounded staging ring, or directly into host-visible
/// memory. Copies are complete on the device when finish() returns.
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
  std::unique_ptr<Ring> ring_;  // made at first use
};

/// Reads a range back. Waits for the copy only: call it after the work that wrote the range was
/// waited for.
std::vector<std::byte> download(Device& device, const BufferView& from);
template <typename T>
std::vector<T> download_as(Device& device, const BufferView& from);
extern template std::vector<float> download_as<float>(Device&, const BufferView&);
extern template std::vector<uint32_t> download_as<uint32_t>(Device&, const BufferView&);

/// Writes a range; waits until the device sees it.
void upload(Device& device, const BufferView& to, std::span<const std::byte> bytes);

}  // namespace mulciber
