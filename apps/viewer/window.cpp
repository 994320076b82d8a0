#define GLFW_INCLUDE_NONE
#define GLFW_INCLUDE_VULKAN
#include "apps/viewer/window.h"

#include <utility>

#include <GLFW/glfw3.h>

namespace mulciber::viewer {
namespace {

Error glfw_error() {
  const char* said = nullptr;
  glfwGetError(&said);
  return Error("the window", said ? said : "cannot be made", "--headless draws without one");
}

}  // namespace

Window::Window(uint32_t width, uint32_t height, float scale) {
  if (!glfwInit()) throw glfw_error();
  if (!glfwVulkanSupported()) throw glfw_error();
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  if (scale <= 0) glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  const float shown = scale > 0 ? scale : 1;
  window_ = glfwCreateWindow(static_cast<int>(static_cast<float>(width) * shown),
                             static_cast<int>(static_cast<float>(height) * shown), "Mulciber",
                             nullptr, nullptr);
  if (!window_) {
    const Error error = glfw_error();
    glfwTerminate();
    throw error;
  }
  glfwSetWindowUserPointer(window_, this);
  glfwSetDropCallback(window_, [](GLFWwindow* window, int count, const char** paths) {
    for (int i = 0; i < count; ++i)
      static_cast<Window*>(glfwGetWindowUserPointer(window))->drop(paths[i]);
  });
}

Window::~Window() {
  glfwDestroyWindow(window_);
  glfwTerminate();
}

graphics::SurfaceNeeds Window::surface_needs() const {
  uint32_t count = 0;
  const char** names = glfwGetRequiredInstanceExtensions(&count);
  if (!names) throw glfw_error();
  return {.instance_extensions = {names, names + count},
          .make_surface = [window = window_](VkInstance instance) {
            VkSurfaceKHR surface = VK_NULL_HANDLE;
            graphics::check(glfwCreateWindowSurface(instance, window, nullptr, &surface),
                            "glfwCreateWindowSurface");
            return surface;
          }};
}

float Window::scale() const {
  float across = 1, down = 1;
  glfwGetWindowContentScale(window_, &across, &down);
  return across;
}

VkExtent2D Window::extent() const {
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  return {static_cast<uint32_t>(width), static_cast<uint32_t>(height)};
}

bool Window::closed() const { return glfwWindowShouldClose(window_); }
void Window::poll() { glfwPollEvents(); }

void Window::resize(uint32_t width, uint32_t height) {
  glfwSetWindowSize(window_, static_cast<int>(width), static_cast<int>(height));
}

void Window::set_title(const std::string& title) { glfwSetWindowTitle(window_, title.c_str()); }

std::vector<std::string> Window::dropped() { return std::exchange(dropped_, {}); }

}  // namespace mulciber::viewer
