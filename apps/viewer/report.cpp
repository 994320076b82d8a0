#include "apps/viewer/report.h"

#include <fstream>

#include <stb_image_write.h>
#include <nlohmann/json.hpp>

namespace mulciber::viewer {

void write_report(const std::string& path, const ReportParts& parts) {
  using nlohmann::json;
  const View& view = parts.view;
  json report = {{"model", parts.session.model_name()},
                 {"text", parts.session.result()},
                 {"layer", view.layer},
                 {"head", view.head},
                 {"step", view.step},
                 {"steps", parts.session.steps().size()},
                 {"rows", parts.rows},
                 {"queries", parts.queries},
                 {"keys", parts.keys},
                 {"theme", view.light ? "light" : "dark"}};
  if (!parts.session.kinds().empty()) report["kind"] = parts.session.kinds()[view.kind].name;
  if (view.step < parts.session.steps().size())
    report["beams"] = parts.session.steps()[view.step].size();
  const ImVec2 size = parts.map.size();
  report["map"] = {parts.map.min.x, parts.map.min.y, size.x, size.y};
  json arcs = json::array();
  for (size_t query = 0; query < parts.curves.queries.size() && query < parts.rows; ++query) {
    for (size_t key = 0; key < parts.curves.keys.size(); ++key) {
      // The middle of the curve that shaders/arcs.vert draws: its control points are each half of
      // the way up or down, and equally far forward.
      const glm::vec3 from = parts.curves.queries[query].place, to = parts.curves.keys[key].place;
      const float forward = 0.75f * (0.15f + 0.16f * glm::abs(from.x - to.x));
      const Projected middle = parts.projection((from + to) * 0.5f + glm::vec3(0, 0, forward));
      arcs.push_back({query, key, middle.place.x, middle.place.y});
    }
  }
  report["arcs"] = std::move(arcs);
  std::ofstream file(path);
  file << report.dump(1, ' ', false, json::error_handler_t::replace) << '\n';
  if (!file.flush()) throw Error(path, "cannot be written", "is there such a folder?");
}

void write_png(const std::string& path, VkExtent2D extent, const std::vector<uint8_t>& rgba) {
  std::vector<uint8_t> rgb;  // every pixel is opaque
  rgb.reserve(rgba.size() / 4 * 3);
  for (size_t i = 0; i < rgba.size(); i += 4) rgb.insert(rgb.end(), &rgba[i], &rgba[i] + 3);
  const int width = static_cast<int>(extent.width), height = static_cast<int>(extent.height);
  if (!stbi_write_png(path.c_str(), width, height, 3, rgb.data(), 3 * width))
    throw Error(path, "cannot be written", "is there such a folder, and room in it?");
}

}  // namespace mulciber::viewer
