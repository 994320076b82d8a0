#include "models/registry.h"

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {
namespace {

template <typename Family>
std::unique_ptr<Model> open(Device& device, const Checkpoint& checkpoint,
                            const ModelOptions& options) {
  return std::make_unique<Family>(device, checkpoint, options);
}

constexpr ModelFamily kFamilies[] = {
    {"marian", open<Marian>},
};

}  // namespace

std::span<const ModelFamily> model_families() {
  return kFamilies;
}

std::unique_ptr<Model> open_model(Device& device, const Checkpoint& checkpoint,
                                  const ModelOptions& options) {
  std::string known;
  for (const ModelFamily& family : kFamilies) {
    if (checkpoint.model_type() == family.model_type)
      return family.open(device, checkpoint, options);
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  const std::string where = checkpoint.path().string();
  if (!checkpoint.has_config())
    throw ModelError(where, "has no config.json", "give a model folder as people download it");
  throw ModelError(where,
                   fmt::format("is a model of type \"{}\"", printable(checkpoint.model_type())),
                   fmt::format("supported types: {}", known));
}

}  // namespace mulciber
