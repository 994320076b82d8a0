#include "apps/viewer/user_interface.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_vulkan.h>
#include <imgui.h>

#include "apps/viewer/frames.h"

namespace mulciber::viewer {
namespace {

using graphics::check;

constexpr float kSmall = 15, kLarge = 34;  // pixels of scale 1

// Latin, Greek, Cyrillic, punctuation, arrows, and the symbols for spaces and blocks.
constexpr ImWchar kLetters[] = {0x20,   0x24f,  0x370,  0x3ff,  0x400,  0x4ff,  0x1e00, 0x1eff,
                                0x2010, 0x2044, 0x20a0, 0x20bf, 0x2190, 0x21b5, 0x2212, 0x2212,
                                0x2423, 0x2423, 0x2581, 0x2581, 0xfffd, 0xfffd, 0};

}  // namespace

UserInterface::UserInterface(graphics::Device& device, const graphics::RenderTarget& target,
                             const Window* window, const std::string& font, float scale)
    : device_(device), windowed_(window != nullptr) {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // no setting of the interface is stored
  load_fonts(font, scale);
  if (window) {
    ImGui_ImplGlfw_InitForVulkan(window->handle(), true);
  } else {
    io.DeltaTime = 1.0f / 60;
    io.MousePos = {-FLT_MAX, -FLT_MAX};
  }
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 8};
  VkDescriptorPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool_info.flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT;
  pool_info.maxSets = size.descriptorCount;
  pool_info.poolSizeCount = 1;
  pool_info.pPoolSizes = &size;
  check(vkCreateDescriptorPool(device.handle(), &pool_info, nullptr, &pool_),
        "vkCreateDescriptorPool");
  ImGui_ImplVulkan_InitInfo info = {};
  info.Instance = device.instance();
  info.PhysicalDevice = device.physical_device();
  info.Device = device.handle();
  info.QueueFamily = device.queue_family();
  info.Queue = device.queue();
  info.DescriptorPool = pool_;
  info.MinImageCount = info.ImageCount = Frames::kInFlight;
  info.MSAASamples = target.samples();
  info.CheckVkResultFn = [](VkResult result) { check(result, "Dear ImGui"); };
  ImGui_ImplVulkan_Init(&info, target.render_pass());
  device.run([](VkCommandBuffer commands) { ImGui_ImplVulkan_CreateFontsTexture(commands); });
  ImGui_ImplVulkan_DestroyFontUploadObjects();
}

UserInterface::~UserInterface() {
  ImGui_ImplVulkan_Shutdown();
  if (windowed_) ImGui_ImplGlfw_Shutdown();
  ImGui::DestroyContext();
  vkDestroyDescriptorPool(device_.handle(), pool_, nullptr);
}

void UserInterface::load_fonts(const std::string& file, float scale) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  std::error_code none;
  const std::string path = file.empty() ? MULCIBER_VIEWER_FONT : file;
  if (!std::filesystem::is_regular_file(path, none)) {
    if (!file.empty()) throw Error(file, "is no file", "name a TrueType font");
    ImFontConfig config;
    config.SizePixels = 13 * std::max(1.0f, scale);
    fonts_.small = fonts_.large = atlas.AddFontDefault(&config);
    return;
  }
  ImFontConfig config;
  config.OversampleH = 2;
  fonts_.small = atlas.AddFontFromFileTTF(path.c_str(), kSmall * scale, &config, kLetters);
  config.OversampleH = 1;
  fonts_.large = atlas.AddFontFromFileTTF(path.c_str(), kLarge * scale, &config, kLetters);
}

void UserInterface::begin(VkExtent2D extent) {
  ImGui_ImplVulkan_NewFrame();
  if (windowed_) {
    ImGui_ImplGlfw_NewFrame();
  } else {
    ImGui::GetIO().DisplaySize = {static_cast<float>(extent.width),
                                  static_cast<float>(extent.height)};
  }
  ImGui::NewFrame();
}

void UserInterface::draw(VkCommandBuffer commands) {
  ImGui::Render();
  ImGui_ImplVulkan_RenderDrawData(ImGui::GetDrawData(), commands);
}

}  // namespace mulciber::viewer
