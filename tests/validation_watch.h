// Watches the Khronos validation layer from outside the library, so that a message fails the test
// that caused it, whatever the library does with its own callback.
#pragma once

#include <memory>
#include <string>

namespace mulciber::tests {

class ValidationWatch {
 public:
  /// Points the layer of every instance made from here on at a pipe of this process. Throws
  /// std::system_error when the pipe or the settings file cannot be made.
  ValidationWatch();
  ~ValidationWatch();

  /// Errors reported since the last call, in the layer's words; empty when there were none.
  std::string take_errors();
  /// Whether the layer has reported that it runs and checks synchronization: without that, its
  /// silence means nothing.
  bool active();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber::tests
