#include <algorithm>
#include <fstream>
#include <iterator>

#include "runtime/kernel.h"
#include "tests/catch.h"
#include "tests/support.h"

TEST_CASE("docs/reference/kernels.md is the table of this build") {
  std::ifstream in(mulciber::tests::source_dir() / "docs/reference/kernels.md");
  const std::string document{std::istreambuf_iterator<char>(in), {}};
  INFO("run: mulciber devices --kernels > docs/reference/kernels.md");
  CHECK((document == mulciber::kernel_table_markdown()));
}

TEST_CASE("A row gives a value to every row constant of its module, and to no other") {
  using namespace mulciber;
  // These constants are fixed in some rows' sources; C++ uses them to count workgroups.
  const RowConstant kTiles[] = {RowConstant::TILE_M, RowConstant::TILE_N, RowConstant::TILE_Q};
  for (const Kernel& kernel : kernels()) {
    if (kernel.spirv.empty()) continue;
    INFO(kernel.id);
    const std::vector<uint32_t>& declared = kernel.reflection.specialization_ids;
    for (const uint32_t id : declared) {
      if (id < static_cast<uint32_t>(RowConstant::TILE_M)) continue;  // from the runtime or the op
      INFO(name_of(RowConstant{id}));
      CHECK(kernel.names(RowConstant{id}));
    }
    for (const auto& [constant, value] : kernel.constants) {
      const auto id = static_cast<uint32_t>(constant);
      if (id >= kFirstHostFact || std::ranges::count(kTiles, constant) > 0) continue;
      INFO(name_of(constant));
      // SPIR-V 1.6 may give the workgroup's size twice, as a mode and as a constant of the same id.
      CHECK(std::ranges::count(declared, id) >= 1);
    }
  }
}

TEST_CASE("Every row on matrix units stands before its plain form, which any device can test") {
  using namespace mulciber;
  const std::span<const Kernel> table = kernels();
  size_t rows = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    const Kernel& row = table[i];
    if ((row.needs & kMatrixUnits) == 0) continue;
    ++rows;
    INFO(row.id);
    REQUIRE(i + 1 < table.size());
    const Kernel& plain = table[i + 1];
    CHECK(plain.id == std::string(row.id) + "_plain");
    CHECK(plain.source == std::string(row.source));
    CHECK(plain.op == row.op);
    CHECK(plain.types == row.types);
    CHECK(plain.shape == row.shape);
    CHECK(plain.tolerance == row.tolerance);
    CHECK(plain.needs == kNothing);
    CHECK(plain.made_for == kPlainMatrices);
    CHECK_FALSE(plain.spirv.empty());
    if (!row.spirv.empty())
      CHECK(plain.reflection.shared_memory_bytes == row.reflection.shared_memory_bytes);
    // Tiles of a workgroup are not divided among subgroups.
    const bool lanes = (row.needs & kWorkgroupMatrices) == 0;
    CHECK(plain.names(RowConstant::PLAIN_LANES) == lanes);
    CHECK(plain.constants.size() == row.constants.size() + (lanes ? 1 : 0));
    for (const auto& [constant, value] : row.constants) {
      INFO(name_of(constant));
      CHECK(plain.find(constant) == value);
    }
  }
  CHECK(rows > 0);
}
