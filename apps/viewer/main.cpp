// mulciber-viewer: attention in three dimensions while a network translates or writes.
#include <cstdio>
#include <exception>
#include <new>
#include <optional>

#include "apps/viewer/options.h"
#include "apps/viewer/viewer.h"

int main(int argc, char** argv) {
  using namespace mulciber;
  // The exit codes are those of the command (mulciber --help).
  constexpr int kSuccess = 0, kBadInput = 2, kDeviceFailed = 4;
  int code = kSuccess;
  try {
    const std::optional<viewer::Options> options = viewer::read_options(argc, argv, code);
    if (!options) return code;
    viewer::Viewer(*options).run();
    return kSuccess;
  } catch (const DeviceError& error) {
    code = kDeviceFailed;
    std::fprintf(stderr, "mulciber-viewer: %s\n", error.what());
  } catch (const KernelError& error) {
    code = kDeviceFailed;
    std::fprintf(stderr, "mulciber-viewer: %s\n", error.what());
  } catch (const std::bad_alloc&) {
    code = kDeviceFailed;
    std::fprintf(stderr, "mulciber-viewer: out of memory\n");
  } catch (const std::exception& error) {
    code = kBadInput;
    std::fprintf(stderr, "mulciber-viewer: %s\n", error.what());
  }
  return code;
}
