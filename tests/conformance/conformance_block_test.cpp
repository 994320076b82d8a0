#include "apps/conform/models.h"
#include "tests/conformance_rows.h"

TEST_CASE("Blocks and the bundled model meet their double-precision definitions") {
  using namespace mulciber;
  using namespace mulciber::conformance;
  Device& device = tests::shared_device();
  size_t index = 0, ran = 0;
  for (const SuiteCase& c : apps::suite_with_models()) {
    if (c.op != "block" && c.op != "model") continue;
    if (c.op == "block" && index++ % tests::case_step() != 0) continue;
    const CaseResult result = c.run(device, {.repeats = 1});
    INFO(c.name << " on " << device.capabilities().name << ": " << name_of(result.status) << ", "
                << result.detail);
    CHECK(result.status == Status::kPass);
    ++ran;
  }
  CHECK(ran > 8);
}
