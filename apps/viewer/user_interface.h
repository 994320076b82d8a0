// Dear ImGui on the viewer's device: its context, fonts, and input from a window, if there is one.
#pragma once

#include <string>

#include "apps/viewer/window.h"
#include "apps/viewer/words.h"
#include "examples/graphics/render_target.h"

namespace mulciber::viewer {

class UserInterface {
 public:
  /// window: null without a window. font: a TrueType file; "": one of the system's, or ImGui's own.
  UserInterface(graphics::Device& device, const graphics::RenderTarget& target,
                const Window* window, const std::string& font, float scale);
  ~UserInterface();
  UserInterface(const UserInterface&) = delete;
  UserInterface& operator=(const UserInterface&) = delete;

  /// extent: the image's, where there is no window.
  void begin(VkExtent2D extent);
  /// Draws inside of the render pass.
  void draw(VkCommandBuffer commands);
  const WordFonts& fonts() const { return fonts_; }

 private:
  void load_fonts(const std::string& file, float scale);

  graphics::Device& device_;
  bool windowed_;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  WordFonts fonts_;
};

}  // namespace mulciber::viewer
