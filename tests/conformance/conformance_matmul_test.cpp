#include "conformance/case_program.h"
#include "ops/matmul.h"
#include "tests/conformance_rows.h"

TEST_CASE("Every row of the matrix product meets its reference") {
  mulciber::tests::check_rows(mulciber::tests::kMatmulOps);
}

// The inputs of both products begin with the same numbers, so that the larger one contains the
// smaller one's.
TEST_CASE("Rows on matrix units give whole tiles the bits that they give tiles with edges") {
  using namespace mulciber;
  using namespace mulciber::conformance;
  Device& device = tests::shared_device();
  for (const char* id : {"matmul_coopmat_64_f32_f16_plain", "matmul_coopmat_8x16_64_f16_plain",
                         "matmul_coopmat_8x8_64_f32_blocks_plain", "matmul_coopmat_64_f32_f16"}) {
    const Kernel& row = *find_kernel(id);
    if (!why_not_runnable(row, device.capabilities()).empty()) continue;
    KernelTypes types = row.types;
    if (types.weight == DataType::kHalf) types.weight = DataType::kF16;
    if (types.weight == DataType::kBlocks) types.weight = DataType::kQ4_0;
    if (types.weight == DataType::kGrids) types.weight = DataType::kIQ3_XXS;
    const auto lines_of = [&](uint64_t m, uint64_t n) {
      const uint64_t shape[] = {m, n, 96};
      OpCase c = op_cases(Op::kMatmul).make(shape, types);
      c.name = "the same inputs";
      CaseProgram program(device, c, &row);
      program.fill(draw_inputs(c, 0));
      program.program().run();
      const std::vector<std::byte> bytes = program.read_outputs().at(0);
      const size_t line = n * size_of(types.activation), kept = 128 * size_of(types.activation);
      std::vector<std::byte> lines;
      for (size_t i = 0; i < 64; ++i) {
        const auto begin = bytes.begin() + static_cast<ptrdiff_t>(i * line);
        lines.insert(lines.end(), begin, begin + static_cast<ptrdiff_t>(kept));
      }
      return lines;
    };
    const std::vector<std::byte> whole = lines_of(64, 128);
    INFO(id);
    CHECK(lines_of(65, 128) == whole);
    CHECK(lines_of(64, 130) == whole);
    CHECK(lines_of(65, 130) == whole);
  }
}
