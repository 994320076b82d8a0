// The sizes at which a device's peaks are measured, by times that the test makes up.
#include "apps/cli/peaks.h"

#include <vector>

#include "tests/catch.h"

namespace {

using mulciber::apps::measure_growing;

/// The sizes that are measured where the first takes `first` seconds, and each of the others
/// `factor` times as long as the one before.
std::vector<size_t> measured(size_t sizes, double first, double factor) {
  std::vector<size_t> places;
  double took = first / factor;
  measure_growing(sizes, 4, 2, [&](size_t size) {
    places.push_back(size);
    return took *= factor;
  });
  return places;
}

}  // namespace

TEST_CASE("Sizes are measured up to the last where there is time") {
  CHECK(measured(5, 0.1, 1) == std::vector<size_t>{0, 1, 2, 3, 4});
  CHECK(measured(1, 0.1, 1) == std::vector<size_t>{0});
}

TEST_CASE("No size is measured that would pass the bound, and always one") {
  CHECK(measured(5, 0.01, 4) == std::vector<size_t>{0, 1, 2, 3});
  CHECK(measured(5, 0.1, 4) == std::vector<size_t>{0, 1});
  CHECK(measured(5, 0.5, 4) == std::vector<size_t>{0});
  CHECK(measured(5, 60, 4) == std::vector<size_t>{0});
}
