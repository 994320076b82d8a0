// Copies rows of floats into an application's images, in any of their formats.
#pragma once

#include <vector>

#include "runtime/application_copy.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"

namespace mulciber {

/// Holds the programs that convert floats to texels, and the buffers between them and images, so
/// that copying allocates and compiles nothing. Many rows are converted a part at a time.
class ImageCopies {
 public:
  /// largest: rows and stride of the largest copy.
  ImageCopies(Device& device, const PaddedRows& largest);
  /// Pipelines of an ImageCopies with these arguments; nothing is allocated.
  static std::vector<PipelineKey> pipelines(const Capabilities& device, const PaddedRows& largest);

  /// Records a copy as record_copy() (runtime/application_copy.h) does, in the formats that
  /// ApplicationImage names.
  void record(VkCommandBuffer commands, const PaddedRows& from, const ApplicationImage& to,
              const char* what);

 private:
  struct Conversion {
    std::vector<VkFormat> formats;
    Program program;
    BufferView texels;
  };
  Device& device_;
  uint64_t room_ = 0;  // floats that are converted at once
  Buffer numbers_;
  std::vector<Conversion> conversions_;
};

}  // namespace mulciber
