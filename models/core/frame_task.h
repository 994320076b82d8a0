// The implementation of FrameTask.
#pragma once

#include "mulciber/embedding.h"
#include "runtime/slices.h"

namespace mulciber {

struct FrameTask::Impl {
  std::shared_ptr<Device> device;
  std::shared_ptr<const void> model;  // owner of the programs, kept alive
  SlicedRun run;

  Impl(std::shared_ptr<Device> on, std::shared_ptr<const void> of,
       std::unique_ptr<StageSource> source)
      : device(std::move(on)), model(std::move(of)), run(*device, std::move(source)) {}
};

}  // namespace mulciber
