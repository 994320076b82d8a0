// A translation in an application of Vulkan-Hpp and SDL: a window whose frames go on while the text
// comes, a few milliseconds of the device's time in each. step() submits slices by itself, to the
// queue that draws and presents the frame. The title shows the text so far, and the window turns
// from dark to light. Closing the window, or Escape, ends everything early.
//   hpp_sdl MODEL_FOLDER "TEXT" [FRAMES]      FRAMES: to be shown when the text is there; 0: until
//                                             the window is closed
#include <SDL.h>
#include <SDL_vulkan.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <vulkan/vulkan.hpp>

#include <mulciber/embedding.h>

namespace {

struct SdlError : std::runtime_error {
  SdlError() : std::runtime_error(SDL_GetError()) {}
};

struct Window {
  SDL_Window* handle = nullptr;
  Window() {
    if (SDL_Init(SDL_INIT_VIDEO) != 0) throw SdlError();
    handle = SDL_CreateWindow("Mulciber", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, 640, 360,
                              SDL_WINDOW_VULKAN);
    if (!handle) throw SdlError();
  }
  ~Window() {
    SDL_DestroyWindow(handle);
    SDL_Quit();
  }
  Window(const Window&) = delete;
  bool closed() const {
    bool closes = false;
    for (SDL_Event event; SDL_PollEvent(&event);) {
      closes = closes || event.type == SDL_QUIT ||
               (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_ESCAPE);
    }
    return closes;
  }
};

/// The first queue family that draws, computes and presents.
uint32_t queue_family_of(vk::PhysicalDevice physical, vk::SurfaceKHR surface) {
  const std::vector<vk::QueueFamilyProperties> families = physical.getQueueFamilyProperties();
  const vk::QueueFlags both = vk::QueueFlagBits::eGraphics | vk::QueueFlagBits::eCompute;
  for (uint32_t i = 0; i < families.size(); ++i) {
    if ((families[i].queueFlags & both) == both && physical.getSurfaceSupportKHR(i, surface))
      return i;
  }
  throw std::runtime_error("no queue family draws, computes and presents");
}

void change_layout(vk::CommandBuffer commands, vk::Image image, vk::ImageLayout from,
                   vk::ImageLayout to, vk::AccessFlags before, vk::AccessFlags after) {
  const vk::ImageSubresourceRange whole(vk::ImageAspectFlagBits::eColor, 0, 1, 0, 1);
  const vk::ImageMemoryBarrier barrier(before, after, from, to, VK_QUEUE_FAMILY_IGNORED,
                                       VK_QUEUE_FAMILY_IGNORED, image, whole);
  commands.pipelineBarrier(vk::PipelineStageFlagBits::eTransfer,
                           vk::PipelineStageFlagBits::eTransfer, {}, {}, {}, barrier);
}

void run(const std::string& folder, const std::string& text, long frames_shown) {
  const Window window;

  // An instance with the window's extensions.
  constexpr uint32_t kVersion = VK_API_VERSION_1_2;
  unsigned count = 0;
  if (!SDL_Vulkan_GetInstanceExtensions(window.handle, &count, nullptr)) throw SdlError();
  std::vector<const char*> names(count);
  if (!SDL_Vulkan_GetInstanceExtensions(window.handle, &count, names.data())) throw SdlError();
  const vk::ApplicationInfo application("hpp_sdl", 1, nullptr, 0, kVersion);
  const vk::UniqueInstance instance =
      vk::createInstanceUnique(vk::InstanceCreateInfo({}, &application, {}, names));
  VkSurfaceKHR raw_surface = VK_NULL_HANDLE;
  if (!SDL_Vulkan_CreateSurface(window.handle, *instance, &raw_surface)) throw SdlError();
  const vk::UniqueSurfaceKHR surface(raw_surface, *instance);
  const vk::PhysicalDevice physical = instance->enumeratePhysicalDevices().at(0);

  // A device with the features that the network can use, and a swapchain.
  const mulciber::ApplicationPhysicalDevice lent_physical = {*instance, physical,
                                                             vkGetInstanceProcAddr, kVersion};
  const std::shared_ptr<const mulciber::OpenModel> model = mulciber::open_model(folder);
  const mulciber::Requirements asked = mulciber::requirements(lent_physical, *model);
  if (!asked.fits()) throw std::runtime_error(asked.obstacles.front());
  const uint32_t family = queue_family_of(physical, *surface);
  std::vector<std::string> enabled = asked.extensions;
  enabled.emplace_back(VK_KHR_SWAPCHAIN_EXTENSION_NAME);
  names.clear();
  for (const std::string& name : enabled) names.push_back(name.c_str());
  const float priority = 1;
  const vk::DeviceQueueCreateInfo queue_info({}, family, 1, &priority);
  vk::DeviceCreateInfo device_info({}, queue_info, {}, names);
  device_info.pNext = asked.features;
  const vk::UniqueDevice device = physical.createDeviceUnique(device_info);
  const vk::Queue queue = device->getQueue(family, 0);

  const vk::SurfaceCapabilitiesKHR limits = physical.getSurfaceCapabilitiesKHR(*surface);
  const vk::SurfaceFormatKHR format = physical.getSurfaceFormatsKHR(*surface).at(0);
  const vk::UniqueSwapchainKHR swapchain = device->createSwapchainKHRUnique(
      vk::SwapchainCreateInfoKHR({}, *surface, limits.minImageCount, format.format,
                                 format.colorSpace, limits.currentExtent, 1,
                                 vk::ImageUsageFlagBits::eTransferDst)
          .setPreTransform(limits.currentTransform));
  const std::vector<vk::Image> images = device->getSwapchainImagesKHR(*swapchain);
  std::vector<vk::UniqueSemaphore> drawn;  // by image
  for (size_t i = 0; i < images.size(); ++i) drawn.push_back(device->createSemaphoreUnique({}));
  const vk::UniqueSemaphore acquired = device->createSemaphoreUnique({});
  const vk::UniqueFence ended = device->createFenceUnique({});
  const vk::UniqueCommandPool pool =
      device->createCommandPoolUnique({vk::CommandPoolCreateFlagBits::eResetCommandBuffer, family});
  const vk::CommandBuffer commands = device->allocateCommandBuffers({*pool, {}, 1}).front();

  // Lends the device to the network.
  mulciber::ApplicationDevice lent;
  lent.physical = lent_physical;
  lent.device = *device;
  lent.queue = {.queue = queue, .family = family};
  lent.enabled_extensions = enabled;
  lent.enabled_features = asked.features;
  mulciber::Translator translator(mulciber::adopt_device(lent), model);
  mulciber::TranslationTask task(translator, text);

  int frames = 0;
  for (long left = frames_shown; !task.done() || frames_shown == 0 || left-- > 0; ++frames) {
    if (window.closed()) {
      task.cancel();
      task.wait();
      break;
    }
    task.step(4000);  // microseconds; does nothing once the task is done
    SDL_SetWindowTitle(window.handle, task.text().c_str());

    const uint32_t index =
        device->acquireNextImageKHR(*swapchain, UINT64_MAX, *acquired, nullptr).value;
    commands.begin(vk::CommandBufferBeginInfo(vk::CommandBufferUsageFlagBits::eOneTimeSubmit));
    change_layout(commands, images[index], vk::ImageLayout::eUndefined,
                  vk::ImageLayout::eTransferDstOptimal, {}, vk::AccessFlagBits::eTransferWrite);
    const float light = std::min(0.2f + 0.01f * static_cast<float>(frames), 1.0f);
    const vk::ClearColorValue color(std::array<float, 4>{0.2f * light, 0.5f * light, light, 1});
    const vk::ImageSubresourceRange whole(vk::ImageAspectFlagBits::eColor, 0, 1, 0, 1);
    commands.clearColorImage(images[index], vk::ImageLayout::eTransferDstOptimal, color, whole);
    change_layout(commands, images[index], vk::ImageLayout::eTransferDstOptimal,
                  vk::ImageLayout::ePresentSrcKHR, vk::AccessFlagBits::eTransferWrite, {});
    commands.end();
    const vk::PipelineStageFlags stage = vk::PipelineStageFlagBits::eTransfer;
    queue.submit(vk::SubmitInfo(*acquired, stage, commands, *drawn[index]), *ended);
    (void)queue.presentKHR(vk::PresentInfoKHR(*drawn[index], *swapchain, index));
    (void)device->waitForFences(*ended, VK_TRUE, UINT64_MAX);
    device->resetFences(*ended);
  }
  queue.waitIdle();
  std::printf("%s\n", task.text().c_str());
  std::fprintf(stderr, "%d frames\n", frames);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: hpp_sdl MODEL_FOLDER \"TEXT\" [FRAMES]\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], argc == 4 ? std::strtol(argv[3], nullptr, 10) : 0);
    return 0;
  } catch (const std::exception& error) {  // SDL's, Vulkan's or the library's
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
