// A value that is made when it is first asked for, and then kept.
#pragma once

#include <mutex>
#include <optional>

namespace mulciber {

template <typename T>
class Lazy {
 public:
  /// `make` runs once, also where several threads ask. Where it throws, the next to ask runs it
  /// again. It must not ask for the same value.
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
