// What stands behind a FrameTask.
#pragma once

#include "mulciber/embedding.h"
#include "runtime/slices.h"

namespace mulciber {

struct FrameTask::Impl {
  std::shared_ptr<Device> device;
  std::function<void()> cancel;  // tells the source
  SlicedRun run;

  Impl(std::shared_ptr<Device> on, std::unique_ptr<StageSource> source,
       std::function<void()> cancels)
      : device(std::move(on)), cancel(std::move(cancels)), run(*device, std::move(source)) {}
};

}  // namespace mulciber
