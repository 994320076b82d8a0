#include "apps/viewer/viewer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/viewer/controls.h"
#include "apps/viewer/frame_graph.h"
#include "apps/viewer/panels.h"
#include "apps/viewer/report.h"
#include "apps/viewer/timeline.h"

namespace mulciber::viewer {
namespace {

constexpr float kArcWidth = 0.55f;  // for weight 1, in ems of the words

std::unique_ptr<Window> make_window(const Options& options) {
  if (options.headless) return nullptr;
  return std::make_unique<Window>(options.width, options.height, options.scale);
}

View first_view(const Options& options, const Window* window) {
  View view;
  view.text = options.text;
  view.threshold = options.threshold;
  view.light = options.light;
  view.budget_ms = static_cast<float>(options.budget_ms);
  view.scale = options.scale > 0 ? options.scale : window ? window->scale() : 1;
  return view;
}

}  // namespace

Viewer::Viewer(Options options)
    : options_(std::move(options)),
      window_(make_window(options_)),
      device_({.application = "mulciber-viewer",
               .name = options_.device,
               .surface = window_ ? window_->surface_needs() : graphics::SurfaceNeeds{}}),
      frames_(device_),
      render_target_(device_, VK_SAMPLE_COUNT_4_BIT),
      view_(first_view(options_, window_.get())),
      interface_(device_, render_target_, window_.get(), options_.font, view_.scale),
      drawing_(device_, render_target_),
      session_(device_, frames_, {.beams = options_.beams, .max_new_tokens = options_.tokens}) {
  if (window_) swapchain_ = std::make_unique<Swapchain>(device_);
  const auto scaled = [&](uint32_t pixels) {
    return static_cast<uint32_t>(std::lround(static_cast<float>(pixels) * view_.scale));
  };
  if (!window_) render_target_.resize({scaled(options_.width), scaled(options_.height)});
}

Viewer::~Viewer() { vkDeviceWaitIdle(device_.handle()); }

void Viewer::load(const std::string& path) {
  view_.notice = "Loading " + path;
  draw_frame(false);
  const auto progress = [&](uint64_t done, uint64_t total) {
    view_.notice =
        "Loading " + path + ": " + std::to_string(100 * done / std::max<uint64_t>(total, 1)) + " %";
    if (window_) draw_frame(false);
  };
  session_.load(path, progress);
  view_.notice.clear();
  map_chosen_ = false;
  start();
}

void Viewer::choose_map() {
  const std::vector<MapKind>& kinds = session_.kinds();
  if (kinds.empty()) return;
  if (!map_chosen_) {
    map_chosen_ = true;
    view_.kind = kinds.size() - 1;
    for (size_t i = 0; i < kinds.size(); ++i) {
      std::string name = kinds[i].name;
      name[0] = static_cast<char>(name[0] - 'A' + 'a');
      if (name == options_.kind) view_.kind = i;
    }
    view_.layer = options_.layer.value_or(kinds[view_.kind].layers - 1);
    view_.head = options_.head.value_or(0);
  }
  const MapKind& kind = kinds[view_.kind];
  view_.layer = std::min(view_.layer, kind.layers - 1);
  view_.head = std::min(view_.head, kind.heads - 1);
}

void Viewer::start() {
  view_.follow = true;
  view_.playing = false;
  view_.notice.clear();
  session_.start(view_.text);
}

bool Viewer::settled() const {
  return session_.idle() && (session_.steps().empty() || session_.has_maps_of(view_.step)) &&
         !view_.playing;
}

void Viewer::fit_to_window() {
  if (!window_ || !remake_) return;
  device_.wait_idle();
  if (!swapchain_->make(window_->extent())) return;
  render_target_.resize(swapchain_->extent());
  remake_ = false;
}

void Viewer::choose_step() {
  const size_t steps = session_.steps().size();
  if (steps == 0) {
    view_.step = 0;
  } else if (view_.follow || view_.step >= steps) {
    view_.step = steps - 1;
    // While the network works, the last step that has maps is shown.
    while (session_.writing() && view_.step > 0 && !session_.has_maps_of(view_.step)) --view_.step;
  }
  if (options_.step && session_.idle() && steps > 0) {
    view_.step = std::min<size_t>(*std::exchange(options_.step, std::nullopt), steps - 1);
    view_.follow = false;
    session_.show(view_.step);
  }
}

void Viewer::prepare(const Layout& layout) {
  shown_ = {};
  const ImVec2 size = layout.scene.size();
  shown_.projection = {view_.camera.view_projection(size.x / size.y), layout.scene,
                       view_.camera.pixels_per_unit({size.x, size.y})};
  if (session_.kinds().empty()) return;
  choose_map();
  const MapKind& kind = session_.kinds()[view_.kind];
  shown_.queries = session_.queries(kind.kind, view_.step);
  shown_.keys = session_.keys(kind.kind, view_.step);
  shown_.curves = lay_out(shown_.queries, shown_.keys, interface_.fonts().large);
  const HeatMaps::Kind& maps = session_.maps().of(kind.kind);
  shown_.maps = maps.filled && session_.has_maps_of(view_.step) &&
                maps.extent.width == shown_.keys.size() &&
                maps.extent.height == shown_.queries.size();
  if (!shown_.maps) return;
  shown_.wall = make_wall(kind.layers, kind.heads);
  shown_.map = {.view_projection = shown_.projection.view_projection,
                .viewport = {size.x, size.y},
                .threshold = std::max(view_.threshold, 1e-6f),
                .width = kArcWidth * shown_.curves.em * shown_.projection.pixels_per_unit,
                .map = view_.layer * kind.heads + view_.head,
                .queries = maps.extent.height,
                .keys = maps.extent.width,
                .rows = session_.rows(kind.kind, view_.step),
                .focus_query = view_.hovered.query,
                .focus_key = view_.hovered.key,
                .scale = view_.scale};
  const bool stepwise = view_.one_step && kind.kind != AttentionKind::kEncoder;
  if (stepwise && view_.hovered.query < 0 && view_.hovered.key < 0)
    shown_.map.focus_query = static_cast<int32_t>(shown_.map.rows) - 1;
  drawing_.prepare(frames_.slot(), *maps.image, shown_.curves, shown_.wall.tiles, view_.theme());
}

void Viewer::draw_interface(const Layout& layout, Wishes& wishes) {
  const WordFonts& fonts = interface_.fonts();
  view_.hovering = {};
  const PanelParts parts = {
      .session = session_,
      .queries = shown_.queries,
      .keys = shown_.keys,
      .fonts = fonts,
      .draw_map = [&](const Rectangle& rectangle) {
        shown_.map_place = rectangle;
        if (!shown_.maps) return;
        ImDrawList& list = *ImGui::GetWindowDrawList();
        list.AddCallback(
            [](const ImDrawList*, const ImDrawCmd* command) {
              const auto& self = *static_cast<const Viewer*>(command->UserCallbackData);
              self.drawing_.draw_map(self.commands_, self.shown_.map_place, self.shown_.map);
            },
            this);
        list.AddCallback(ImDrawCallback_ResetRenderState, nullptr);
      }};
  draw_panel(view_, layout, parts, wishes);
  draw_timeline(view_, layout, session_, fonts, wishes);

  ImDrawList& list = *ImGui::GetBackgroundDrawList();
  list.PushClipRect(layout.scene.min, layout.scene.max);
  if (shown_.maps)
    draw_wall(list, view_, shown_.wall, session_.kinds()[view_.kind], shown_.projection, fonts);
  const WordsShown words = {.rows = shown_.maps ? shown_.map.rows : shown_.queries.size(),
                            .query = shown_.map.focus_query,
                            .key = shown_.map.focus_key};
  const WordsHovered hovered =
      draw_words(list, shown_.curves, shown_.projection, fonts, view_.theme(), words, view_.scale);
  if (hovered.query >= 0 || hovered.key >= 0) view_.hovering = hovered;
  list.PopClipRect();
  view_.hovered = view_.hovering;
}

bool Viewer::draw_frame(bool computes) {
  if (window_) window_->poll();
  fit_to_window();
  if (window_ && remake_) return false;  // it has no area now
  commands_ = frames_.begin();
  const size_t slot = frames_.slot();
  if (frames_.ended()) view_.times.push_back(*frames_.ended());
  while (view_.times.size() > kGraphFrames) view_.times.pop_front();
  if (computes) {
    session_.completed(slot);
    choose_step();
    session_.record(commands_, slot, 1000.0 * static_cast<double>(view_.budget_ms));
  }
  frames_.network_ends();

  const VkExtent2D extent = render_target_.extent();
  const Theme& theme = view_.theme();
  apply(theme, view_.scale);
  interface_.begin(extent);
  const size_t beams = session_.continues() ? 1 : options_.beams;
  const Layout layout = lay_out_window(
      {static_cast<float>(extent.width), static_cast<float>(extent.height)}, view_.scale, beams);
  Wishes wishes;
  control(view_, layout, session_, wishes);
  prepare(layout);
  draw_interface(layout, wishes);
  render_target_.begin(commands_, theme.background);
  if (shown_.maps) {
    DrawnMap tiles = shown_.map;
    drawing_.draw_tiles(commands_, layout.scene, tiles);
    drawing_.draw_arcs(commands_, layout.scene, shown_.map);
  }
  interface_.draw(commands_);
  vkCmdEndRenderPass(commands_);

  const std::optional<uint32_t> image = window_ ? swapchain_->acquire(slot) : std::nullopt;
  if (image) {
    swapchain_->copy(commands_, render_target_.image(), extent, *image);
    frames_.submit(swapchain_->acquired(slot), swapchain_->drawn(*image));
    remake_ = !swapchain_->present(*image);
  } else {
    frames_.submit(VK_NULL_HANDLE, VK_NULL_HANDLE);
    remake_ = true;
  }
  if (window_ && session_.result() != title_) {
    title_ = session_.result();
    window_->set_title(title_.empty() ? "Mulciber" : title_);
  }
  const VkExtent2D wanted = window_ ? window_->extent() : extent;
  remake_ = remake_ || wanted.width != extent.width || wanted.height != extent.height;
  if (!computes) return true;
  if (wishes.start) start();
  if (wishes.show_step) session_.show(view_.step);
  return true;
}

void Viewer::run() {
  if (options_.model.empty())
    throw ModelError("the model", "there is none beside the program", "name one with -m");
  load(options_.model);
  uint32_t frames = 0;
  while (options_.frames == 0 || frames < options_.frames) {
    if (window_ && window_->closed()) break;
    try {
      if (window_ && !options_.drop.empty() && settled())
        window_->drop(std::exchange(options_.drop, {}));
      if (window_) {
        const std::vector<std::string> dropped = window_->dropped();
        if (!dropped.empty()) load(dropped.front());
      }
      if (settled() && options_.resized_width > 0)
        window_->resize(std::exchange(options_.resized_width, 0), options_.resized_height);
      const bool was_settled = settled();
      if (draw_frame(true) && was_settled) ++frames;
    } catch (const Error& error) {  // a bad text or file must not end the program
      const auto* device = dynamic_cast<const DeviceError*>(&error);
      if (!window_ || (device && device->kind() != DeviceError::Kind::kOutOfMemory)) throw;
      view_.notice = error.what();
    }
  }
  frames_.wait();
  if (!options_.screenshot.empty())
    write_png(options_.screenshot, render_target_.extent(), render_target_.read());
  if (!options_.report.empty())
    write_report(options_.report, {.view = view_,
                                   .session = session_,
                                   .curves = shown_.curves,
                                   .projection = shown_.projection,
                                   .map = shown_.map_place,
                                   .queries = shown_.queries,
                                   .keys = shown_.keys,
                                   .rows = shown_.map.rows});
}

}  // namespace mulciber::viewer
