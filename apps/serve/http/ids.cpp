#include "apps/serve/http/ids.h"

#include <fmt/format.h>

#include <random>

namespace mulciber::apps::serve {

std::string new_id(const char* prefix) {
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}{:08x}{:08x}", prefix, random(), random(), random(), random());
}

}  // namespace mulciber::apps::serve
