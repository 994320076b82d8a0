// A value that is made at first use and then kept.
#pragma once

#include <mutex>
#include <optional>

namespace mulciber {

template <typename T>
class Lazy {
 public:
  /// Calls `make` once, also when several threads ask. If it throws, the next caller runs it again.
  /// `make` must not ask for the same value.
  template <typename Make>
  const T& get(Make&& make) const {
    const std::lock_guard lock(mutex_);
    if (!value_) value_.emplace(make());
    return *value_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::optional<T> value_;
};

}  // namespace mulciber
