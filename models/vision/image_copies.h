// Copies of rows of floats into a host's images, of whichever format.
#pragma once

#include <vector>

#include "runtime/host_copy.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"

namespace mulciber {

/// Holds the programs that turn numbers into texels, and what stands between them and images, so
/// that copying allocates and compiles nothing. Many rows are turned a part at a time.
class ImageCopies {
 public:
  /// largest: rows and stride of the most that is copied.
  ImageCopies(Device& device, const PaddedRows& largest);
  /// What one with these arguments dispatches; nothing is allocated.
  static std::vector<PipelineKey> pipelines(const Capabilities& device, const PaddedRows& largest);

  /// As record_copy() (runtime/host_copy.h), in the formats that HostImage names.
  void record(VkCommandBuffer commands, const PaddedRows& from, const HostImage& to,
              const char* what);

 private:
  struct Conversion {
    std::vector<VkFormat> formats;
    Program program;
    BufferView texels;
  };
  Device& device_;
  uint64_t room_ = 0;  // numbers that are turned at once
  Buffer numbers_;
  std::vector<Conversion> conversions_;
};

}  // namespace mulciber
