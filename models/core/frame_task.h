// The implementation of FrameTask.
#pragma once

#include "mulciber/embedding.h"
#include "runtime/slices.h"

namespace mulciber {

struct FrameTask::Impl {
  std::shared_ptr<Device> device;
  std::shared_ptr<const void> model;  // owner of the programs, kept alive
  SlicedRun run;

  /// used: the part of the model that slices use, which must not own the device.
  Impl(std::shared_ptr<Device> on, std::shared_ptr<const void> of,
       std::unique_ptr<StageSource> source, std::shared_ptr<const void> used)
      : device(std::move(on)),
        model(std::move(of)),
        run(*device, std::move(source), std::move(used)) {}
};

}  // namespace mulciber
