// Tensors on the shared device that live as long as a test needs them.
#pragma once

#include <span>
#include <vector>

#include "tests/device.h"

namespace mulciber::tests {

class DeviceTensors {
 public:
  Tensor put(Shape shape, DataType type, std::span<const std::byte> bytes) {
    Device& device = shared_device();
    buffers_.push_back(device.memory().allocate(bytes.size(), MemoryUsage::kActivations));
    BufferView view = buffers_.back().view();
    view.size = bytes.size();
    upload(device, view, bytes);
    return buffers_.back().tensor(shape, type);
  }
  Tensor words(const std::vector<uint32_t>& values) {
    return put({values.size()}, DataType::kU32, std::as_bytes(std::span(values)));
  }

 private:
  std::vector<Buffer> buffers_;
};

}  // namespace mulciber::tests
