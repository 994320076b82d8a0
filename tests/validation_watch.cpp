#include "tests/validation_watch.h"

#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <poll.h>

#include "tests/support.h"

namespace mulciber::tests {

// The log is a pipe, not a file: the layer reopens its log, and truncates it, with every instance.
struct ValidationWatch::Impl {
  TemporaryFolder folder;
  int pipe_ends[2] = {-1, -1};
  std::mutex mutex;
  std::string text;
  bool active = false;
  std::atomic<bool> stop{false};
  std::thread reader;

  // Reads what is there without waiting. Call with the mutex held.
  void drain() {
    char buffer[4096];
    for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    // The layer begins with a list of the enabled checks.
    if (text.find("ENABLE_SYNCHRONIZATION_VALIDATION") != std::string::npos) active = true;
  }
};

ValidationWatch::ValidationWatch() : impl_(std::make_unique<Impl>()) {
  if (pipe(impl_->pipe_ends) != 0 || fcntl(impl_->pipe_ends[0], F_SETFL, O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe for the validation layer");
  const auto settings = impl_->folder.path() / "vk_layer_settings.txt";
  std::ofstream(settings) << "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n"
                          << "khronos_validation.report_flags = error,info\n"
                          << "khronos_validation.duplicate_message_limit = 3\n"
                          << "khronos_validation.log_filename = /proc/self/fd/"
                          << impl_->pipe_ends[1] << "\n";
  setenv("VK_LAYER_SETTINGS_PATH", settings.c_str(), 1);
  // The pipe holds 64 KiB; without a reader a noisy test would wait forever.
  impl_->reader = std::thread([impl = impl_.get()] {
    while (!impl->stop) {
      pollfd waiting{impl->pipe_ends[0], POLLIN, 0};
      if (poll(&waiting, 1, 100) <= 0) continue;
      const std::lock_guard lock(impl->mutex);
      impl->drain();
    }
  });
}

ValidationWatch::~ValidationWatch() {
  impl_->stop = true;
  impl_->reader.join();
  // The write end stays open: the layer may still log while the process ends.
  close(impl_->pipe_ends[0]);
}

std::string ValidationWatch::take_errors() {
  const std::lock_guard lock(impl_->mutex);
  impl_->drain();
  std::string text = std::move(impl_->text);
  impl_->text.clear();
  // All other lines, such as which settings file was read, are information.
  const size_t first = text.find("Validation Error");
  return first == std::string::npos ? std::string() : text.substr(first);
}

bool ValidationWatch::active() {
  const std::lock_guard lock(impl_->mutex);
  impl_->drain();
  return impl_->active;
}

}  // namespace mulciber::tests
