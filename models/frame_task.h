// What stands behind a FrameTask.
#pragma once

#include "mulciber/embedding.h"
#include "runtime/slices.h"

namespace mulciber {

struct FrameTask::Impl {
  std::shared_ptr<Device> device;
  SlicedRun run;

  Impl(std::shared_ptr<Device> on, std::unique_ptr<StageSource> source)
      : device(std::move(on)), run(*device, std::move(source)) {}
};

}  // namespace mulciber
