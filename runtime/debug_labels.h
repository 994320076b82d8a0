// Names of groups of commands that RenderDoc, Nsight and messages of validation layers show
// (VK_EXT_debug_utils).
#pragma once

#include "runtime/vulkan.h"

namespace mulciber {

/// Labels groups of commands one after another. A label that is open when this object ends is
/// closed.
class DebugLabels {
 public:
  DebugLabels(const InstanceFunctions& vk, VkCommandBuffer commands)
      : vk_(vk), commands_(commands) {}
  ~DebugLabels() { end(); }
  DebugLabels(const DebugLabels&) = delete;

  /// Closes the label before, and opens the next.
  void begin(const char* name) {
    end();
    VkDebugUtilsLabelEXT label{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
    label.pLabelName = name;
    vk_.vkCmdBeginDebugUtilsLabelEXT(commands_, &label);
    open_ = true;
  }
  void end() {
    if (open_) vk_.vkCmdEndDebugUtilsLabelEXT(commands_);
    open_ = false;
  }

 private:
  const InstanceFunctions& vk_;
  VkCommandBuffer commands_;
  bool open_ = false;
};

/// Whether the instance has enabled the extension.
inline bool has_debug_labels(const InstanceFunctions& vk) {
  return vk.vkCmdBeginDebugUtilsLabelEXT && vk.vkCmdEndDebugUtilsLabelEXT;
}

}  // namespace mulciber
