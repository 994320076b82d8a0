// C functions for requirements.
#include "mulciber/c/requirements.h"

#include <algorithm>
#include <cstring>

#include "capi/handles.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

/// Features without a place, and what C shows of them.
struct ShownFeatures {
  std::vector<UnplacedFeature> features;
  std::vector<std::vector<const char*>> structures;  // by feature
  std::vector<MulciberUnplacedFeature> list;

  explicit ShownFeatures(std::vector<UnplacedFeature> found) : features(std::move(found)) {
    for (const UnplacedFeature& feature : features) {
      auto& names = structures.emplace_back();
      for (const std::string& name : feature.structures) names.push_back(name.c_str());
      list.push_back({.size = sizeof(MulciberUnplacedFeature),
                      .structure_count = static_cast<uint32_t>(names.size()),
                      .name = feature.name.c_str(),
                      .structures = names.data()});
    }
  }
  ShownFeatures(const ShownFeatures&) = delete;
};

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_query_requirements(MulciberContext* context,
                                           const MulciberPhysicalDevice* physical_device,
                                           const MulciberModel* model, const MulciberLoadInfo* from,
                                           MulciberRequirements* to) {
  return guarded(context, [&] {
    const ApplicationPhysicalDevice application = application_physical(physical_device);
    MulciberRequirements result = of_any_version(to, "MulciberRequirements");
    const GeneratorOptions options = generator_options(load_info(from));
    MulciberContext& c = *context;
    c.requirements =
        model ? requirements(application, *model->model, options) : requirements(application);
    const Requirements& found = c.requirements;
    c.list.clear();
    for (const Requirement& r : found.list)
      c.list.push_back({.size = sizeof(MulciberRequirement),
                        .kind = static_cast<MulciberRequirementKind>(r.kind),
                        .name = r.name.c_str(),
                        .required = r.required,
                        .available = r.available,
                        .brings = r.brings.c_str()});
    c.extensions.clear();
    for (const std::string& name : found.extensions) c.extensions.push_back(name.c_str());
    c.obstacles.clear();
    for (const std::string& obstacle : found.obstacles)
      c.obstacles += (c.obstacles.empty() ? "" : "\n") + obstacle;
    const uint32_t size = result.size;
    result = {.size = size,
              .requirement_count = static_cast<uint32_t>(c.list.size()),
              .requirements = c.list.data(),
              .extension_count = static_cast<uint32_t>(c.extensions.size()),
              .extensions = c.extensions.data(),
              .features = found.features,
              .queue_family = found.queue_family,
              .fits = found.fits(),
              .obstacles = c.obstacles.c_str(),
              .weight_bytes = found.memory.weight_bytes,
              .context_bytes = found.memory.context_bytes};
    std::memcpy(to, &result, std::min<size_t>(size, sizeof(result)));
  });
}

MulciberStatus mulciber_enable_features(MulciberContext* context, const MulciberRequirements* from,
                                        VkPhysicalDeviceFeatures2* features, uint32_t* count,
                                        const MulciberUnplacedFeature** unplaced) {
  return guarded(context, [&] {
    given_to(count, "unplaced_count") = 0;
    given_to(unplaced, "unplaced") = nullptr;
    Requirements found;
    found.features = &given_to(of_any_version(from, "MulciberRequirements").features,
                               "MulciberRequirements::features");
    const auto shown =
        std::make_shared<const ShownFeatures>(enable(found, &given_to(features, "features")));
    *count = static_cast<uint32_t>(shown->list.size());
    *unplaced = shown->list.data();
    context->unplaced = shown;
  });
}

// Deprecated names of version 0.1.

MulciberStatus mulciber_requirements(MulciberContext* context,
                                     const MulciberPhysicalDevice* physical_device,
                                     const MulciberModel* model, MulciberRequirements* to) {
  return mulciber_query_requirements(context, physical_device, model, nullptr, to);
}

MulciberStatus mulciber_requirements_with(MulciberContext* context,
                                          const MulciberPhysicalDevice* physical_device,
                                          const MulciberModel* model, const MulciberLoadInfo* info,
                                          MulciberRequirements* to) {
  return mulciber_query_requirements(context, physical_device, model, info, to);
}
