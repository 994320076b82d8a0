// A window of the desktop, by GLFW.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/graphics/device.h"

struct GLFWwindow;

namespace mulciber::viewer {

class Window {
 public:
  /// The extents are in pixels of scale 1. Throws Error where there is no display.
  Window(uint32_t width, uint32_t height, float scale);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  graphics::SurfaceNeeds surface_needs() const;
  /// The monitor's scale.
  float scale() const;
  VkExtent2D extent() const;
  bool closed() const;
  void poll();
  void resize(uint32_t width, uint32_t height);
  void set_title(const std::string& title);
  GLFWwindow* handle() const { return window_; }
  /// Files that were dragged onto the window since the last call.
  std::vector<std::string> dropped();
  void drop(const std::string& path) { dropped_.push_back(path); }

 private:
  GLFWwindow* window_ = nullptr;
  std::vector<std::string> dropped_;
};

}  // namespace mulciber::viewer
