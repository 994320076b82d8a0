#include "models/core/frame_task.h"

namespace mulciber {
namespace {

FrameSlice public_slice(const Slice& slice) {
  return {slice.number, slice.dispatches, slice.estimated_us};
}

SubmissionSemaphores submission_semaphores(const FrameSemaphores& semaphores) {
  SubmissionSemaphores result;
  for (const FrameSemaphores::Wait& wait : semaphores.waits) {
    result.waits.push_back(wait.semaphore);
    result.wait_stages.push_back(wait.stage);
    result.wait_values.push_back(wait.value);
  }
  for (const FrameSemaphores::Signal& signal : semaphores.signals) {
    result.signals.push_back(signal.semaphore);
    result.signal_values.push_back(signal.value);
  }
  return result;
}

}  // namespace

FrameTask::FrameTask(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FrameTask::~FrameTask() = default;

FrameSlice FrameTask::record(VkCommandBuffer commands, double budget_us) {
  impl_->device->require_alive();
  return public_slice(impl_->run.record(commands, budget_us));
}

FrameBorders FrameTask::borders() {
  const SliceBorders borders = slice_borders();
  return {borders.waits_for.stages, borders.waits_for.accesses, borders.shown_to.stages,
          borders.shown_to.accesses};
}

void FrameTask::completed(uint64_t number) { impl_->run.completed(number); }
void FrameTask::discard(uint64_t number) { impl_->run.discard(number); }

FrameStep FrameTask::step(double budget_us, const FrameSemaphores& semaphores) {
  const SlicedRun::Step step = impl_->run.step(budget_us, submission_semaphores(semaphores));
  return {public_slice(step.slice), step.waits, step.semaphore, step.value};
}

void FrameTask::wait() { impl_->run.wait(); }
bool FrameTask::wait(uint64_t timeout_ns) { return impl_->run.wait(timeout_ns); }
bool FrameTask::done() const { return impl_->run.done(); }
void FrameTask::cancel() { impl_->run.cancel(); }

}  // namespace mulciber
