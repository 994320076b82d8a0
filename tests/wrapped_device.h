// A device of an application whose functions are wrapped by a test.
#pragma once

#include <string_view>

#include "mulciber/application_device.h"
#include "runtime/vulkan.h"

namespace mulciber::tests {

// A type for each device function, so that each has a wrapper of its own.
#define MULCIBER_DEVICE_FUNCTION_NAME(name)                      \
  struct NameOf_##name {                                         \
    [[maybe_unused]] static constexpr const char* kName = #name; \
  };
MULCIBER_DEVICE_FUNCTIONS(MULCIBER_DEVICE_FUNCTION_NAME)
#undef MULCIBER_DEVICE_FUNCTION_NAME

/// Wraps the device functions that the library looks up. Wrapper<Name, Function>: kWraps says
/// whether functions of this type are wrapped; then `call` takes the place of a function, which
/// `original` holds, and Name::kName is its name.
template <template <typename Name, typename Function> class Wrapper>
class WrappedDevice {
 public:
  static ApplicationDevice wrap(ApplicationDevice lent) {
    instance_entry_ = lent.physical.get_instance_proc_addr;
    lent.physical.get_instance_proc_addr = find_of_instance;
    return lent;
  }

 private:
  template <typename Call>
  static PFN_vkVoidFunction wrapped(PFN_vkVoidFunction found) {
    if constexpr (Call::kWraps) {
      Call::original = reinterpret_cast<decltype(Call::original)>(found);
      return reinterpret_cast<PFN_vkVoidFunction>(&Call::call);
    }
    return found;
  }
  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_of_device(VkDevice device,
                                                                 const char* name) {
    const PFN_vkVoidFunction found = device_entry_(device, name);
#define MULCIBER_WRAP_FUNCTION(function)            \
  if (found && std::string_view(name) == #function) \
    return wrapped<Wrapper<NameOf_##function, PFN_##function>>(found);
    MULCIBER_DEVICE_FUNCTIONS(MULCIBER_WRAP_FUNCTION)
#undef MULCIBER_WRAP_FUNCTION
    return found;
  }
  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_of_instance(VkInstance instance,
                                                                   const char* name) {
    const PFN_vkVoidFunction found = instance_entry_(instance, name);
    if (std::string_view(name) != "vkGetDeviceProcAddr") return found;
    device_entry_ = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&find_of_device);
  }

  static inline PFN_vkGetInstanceProcAddr instance_entry_ = nullptr;
  static inline PFN_vkGetDeviceProcAddr device_entry_ = nullptr;
};

}  // namespace mulciber::tests
