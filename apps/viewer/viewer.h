// The program's frames: in each the network computes a little and the scene is drawn.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/viewer/drawing.h"
#include "apps/viewer/frames.h"
#include "apps/viewer/options.h"
#include "apps/viewer/session.h"
#include "apps/viewer/swapchain.h"
#include "apps/viewer/user_interface.h"
#include "apps/viewer/view.h"
#include "apps/viewer/window.h"
#include "examples/graphics/render_target.h"

namespace mulciber::viewer {

class Viewer {
 public:
  explicit Viewer(Options options);
  ~Viewer();

  /// Draws frames until the window is closed, or as many as the options ask for.
  void run();

 private:
  /// The parts of the maps that a frame shows.
  struct Shown {
    std::vector<std::string> queries, keys;
    WordCurves curves;
    Wall wall;
    Projection projection;
    DrawnMap map;
    bool maps = false;
    Rectangle map_place = {};
  };

  void load(const std::string& path);
  void start();
  /// Returns true if a frame was drawn. computes: also runs the network's part.
  bool draw_frame(bool computes);
  void choose_map();
  void choose_step();
  void prepare(const Layout& layout);
  void draw_interface(const Layout& layout, Wishes& wishes);
  void fit_to_window();
  bool settled() const;

  Options options_;
  std::unique_ptr<Window> window_;
  graphics::Device device_;
  Frames frames_;
  graphics::RenderTarget render_target_;
  View view_;
  UserInterface interface_;
  Drawing drawing_;
  std::unique_ptr<Swapchain> swapchain_;
  bool remake_ = true;  // make the swapchain again
  bool map_chosen_ = false;
  std::string title_;  // the window's
  Session session_;
  Shown shown_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

}  // namespace mulciber::viewer
