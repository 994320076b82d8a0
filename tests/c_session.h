// Devices, models and contexts of the C interface, for its tests.
#pragma once

#include <string>
#include <vector>

#include "mulciber/mulciber_c.h"
#include "tests/catch.h"
#include "tests/vulkan_application.h"

namespace mulciber::tests {

struct Context {
  MulciberContext* handle = nullptr;
  Context() { REQUIRE(mulciber_create_context(&handle) == MULCIBER_OK); }
  ~Context() { mulciber_destroy_context(handle); }
  std::string message() const { return mulciber_message(handle); }
};

/// A device that the application lends through the C interface.
struct Lent {
  MulciberPhysicalDevice physical = {sizeof(physical)};
  MulciberDeviceInfo info = {sizeof(info)};
  std::vector<const char*> extensions;

  explicit Lent(const VulkanApplication& application) {
    physical.instance = application.physical.instance;
    physical.physical_device = application.physical.physical_device;
    physical.get_instance_proc_addr = application.physical.get_instance_proc_addr;
    physical.api_version = application.physical.api_version;
    for (const std::string& name : application.asked.extensions) extensions.push_back(name.c_str());
    info.physical = &physical;
    info.device = application.device;
    info.extension_count = static_cast<uint32_t>(extensions.size());
    info.extensions = extensions.data();
    info.features = application.asked.features;
    info.queue = application.queue;
    info.queue_family = application.asked.queue_family;
  }
};

/// A context, and an open model on the device that was lent for it.
struct Session {
  VulkanApplication application;
  Context context;
  MulciberContext* c = context.handle;
  MulciberDevice* device = nullptr;
  MulciberModel* model = nullptr;

  explicit Session(const std::string& path) {
    const Lent lent(application);
    REQUIRE(mulciber_adopt_device(c, &lent.info, &device) == MULCIBER_OK);
    REQUIRE(mulciber_open_model(c, path.c_str(), &model) == MULCIBER_OK);
  }
  ~Session() {
    mulciber_destroy_model(model);
    mulciber_destroy_device(device);
  }
  /// Runs a task to its end.
  void finish(MulciberTask* task) const {
    while (!mulciber_is_done(task)) {
      MulciberStep step = {sizeof(step)};
      REQUIRE(mulciber_step(c, task, 2000, nullptr, &step) == MULCIBER_OK);
      REQUIRE(mulciber_wait(c, task) == MULCIBER_OK);
    }
  }
};

}  // namespace mulciber::tests
