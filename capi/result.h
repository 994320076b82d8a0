// Results and cancellation of calls that compute and wait.
#pragma once

#include <atomic>
#include <memory>

#include "mulciber/c/cancel.h"
#include "mulciber/c/result.h"

struct MulciberResult {
  std::shared_ptr<const void> kept;  // what the lists and texts of the result point into
};
struct MulciberCancel {
  std::atomic<bool> requested = false;
};

namespace mulciber::c {

inline const std::atomic<bool>* cancel_flag(const MulciberCancel* cancel) {
  return cancel ? &cancel->requested : nullptr;
}

}  // namespace mulciber::c
