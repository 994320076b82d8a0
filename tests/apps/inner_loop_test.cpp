// Inner loops found in disassembly: excerpts of each instruction set (tests/data/disassembly),
// whose instructions were counted by hand.
#include "apps/kernels/inner_loop.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "tests/catch.h"
#include "tests/support.h"

namespace {

using mulciber::apps::inner_loop;
using mulciber::apps::InnerLoop;

std::string excerpt(const char* name) {
  std::ifstream in(mulciber::tests::data_dir() / "disassembly" / (std::string(name) + ".txt"));
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string described(const std::optional<InnerLoop>& loop) {
  if (!loop) return "none";
  std::string text = fmt::format("{} in {}:", loop->multiply_adds, loop->instructions);
  const std::pair<const char*, uint32_t> classes[] = {
      {"fma", loop->fma},         {"matrix", loop->matrix}, {"arithmetic", loop->arithmetic},
      {"memory", loop->memory},   {"shared", loop->shared}, {"scalar", loop->scalar},
      {"control", loop->control}, {"nops", loop->nops},     {"scratch", loop->scratch}};
  for (const auto& [name, count] : classes) {
    if (count > 0) text += fmt::format(" {} {}", count, name);
  }
  return text;
}

}  // namespace

// attention_map_vector_f32 multiplies four numbers by four in one pass of its loop, whatever
// compiler made the code.
TEST_CASE("The inner loop is counted in each driver's disassembly") {
  CHECK(described(inner_loop("Assembly", excerpt("rdna3"), 64)) ==
        "4 in 22: 4 fma 3 arithmetic 1 memory 6 scalar 1 control 7 nops");
  CHECK(described(inner_loop("NAK assembly", excerpt("ada"), 32)) ==
        "4 in 23: 4 fma 8 arithmetic 2 memory 8 scalar 1 control");
  CHECK(described(inner_loop("GEN Assembly", excerpt("xe2"), 16)) ==
        "4 in 25: 4 fma 8 arithmetic 2 memory 7 scalar 1 control 3 nops");
  CHECK(described(inner_loop("GEN Assembly", excerpt("gen9"), 16)) ==
        "4 in 23: 4 fma 9 arithmetic 2 memory 7 scalar 1 control");
  CHECK(described(inner_loop("IR3 Assembly", excerpt("adreno740"), 128)) ==
        "4 in 31: 4 fma 3 arithmetic 2 memory 4 scalar 2 control 16 nops");
  CHECK(described(inner_loop("Assembly", excerpt("valhall"), 16)) ==
        "4 in 19: 4 fma 10 arithmetic 2 memory 3 control");
  // The loop has fourteen operations in twelve tuples.
  CHECK(described(inner_loop("Assembly", excerpt("bifrost"), 8)) ==
        "4 in 12: 4 fma 7 arithmetic 1 memory 2 control");
  // V3D has no multiply-add: its loop has a product and two sums, and one product with one sum
  // counts as one multiply-add.
  CHECK(described(inner_loop("QPU (MESA_SHADER_COMPUTE)", excerpt("v3d"), 16)) ==
        "1 in 17: 2 fma 8 arithmetic 2 memory 2 control 6 nops");
}

TEST_CASE("An instruction of half the subgroup does half a multiply-add for each lane") {
  CHECK(inner_loop("GEN Assembly", excerpt("xe2"), 32)->multiply_adds == 2);
  CHECK(inner_loop("GEN Assembly", excerpt("gen9"), 8)->multiply_adds == 8);
}

TEST_CASE("What two units do at once are two operations of one instruction") {
  CHECK(described(inner_loop("Assembly", excerpt("rdna3_wave32"), 32)) ==
        "12 in 18: 12 fma 1 arithmetic 6 shared 1 scalar 2 control 1 nops");
}

TEST_CASE("Lanes share what a matrix instruction does") {
  CHECK(described(inner_loop("Assembly", excerpt("rdna3_matrix"), 64)) ==
        "192 in 11: 3 matrix 2 shared 2 scalar 2 control 2 nops");
  CHECK(inner_loop("Assembly", excerpt("rdna3_matrix"), 32)->multiply_adds == 384);
  // The branch out of this loop is in the middle of it.
  CHECK(described(inner_loop("NAK assembly", excerpt("ada_matrix"), 32)) ==
        "64 in 18: 1 matrix 8 arithmetic 3 shared 3 scalar 2 control 1 nops");
  // dpas as Mesa's assembler writes it: eight rows, eight steps of two halves or four bytes each.
  const auto dpas = [](std::string_view operands) {
    return fmt::format(
        "LABEL0:\ndpas.8x8({}  {{ align1 WE_all 1Q $3 }};\n(+f0.0) while(8) JIP:  LABEL0",
        operands);
  };
  const std::string halves = dpas("8)     g10<1>F   g10<1>F   g34<1>HF   g42<1>HF");
  CHECK(described(inner_loop("GEN Assembly", halves, 8)) == "128 in 2: 1 matrix 1 control");
  const std::string bytes = dpas("16)    g10<1>D   g10<1>D   g34<1>UB   g42<1>B");
  CHECK(described(inner_loop("GEN Assembly", bytes, 32)) == "128 in 2: 1 matrix 1 control");
}

// The instructions are those of matvec_dot_q8_1_blocks.
TEST_CASE("A dot product of four bytes is four multiply-adds") {
  for (const char* name :
       {"v_dot4_i32_iu8 v45, v45, v32, 0 neg_lo:[1,1,0]", "v_dot4_i32_i8 v45, v45, v32, 0"}) {
    INFO(name);
    const std::string loop = fmt::format("BB1:\n\t{}\n\ts_cbranch_scc0 BB1\n", name);
    CHECK(described(inner_loop("Assembly", loop, 64)) == "4 in 2: 1 fma 1 control");
  }
  CHECK(described(inner_loop("NAK assembly",
                             "block.u 5 L6 [5] -> {\n"
                             "      r13     = idp4.i8.i8 r24 r1 r13     // delay=1\n"
                             "} -> [5]\n",
                             32)) == "4 in 1: 1 fma");
  CHECK(described(inner_loop("GEN Assembly",
                             "LABEL0:\ndp4a(8)         g9<1>D          g62.0<0,1,0>D   "
                             "g127<8,8,1>D    g1<1,1,1>D { align1 1Q };\n"
                             "(+f0.0) while(8) JIP:  LABEL0",
                             8)) == "4 in 2: 1 fma 1 control");
}

TEST_CASE("Spilled registers are told from other memory") {
  // When registers run out, GCN 4 spills to buffers, RDNA 3 to shared memory.
  CHECK(described(inner_loop("Assembly", excerpt("gcn4_spill"), 64)) ==
        "6 in 23: 6 fma 5 arithmetic 1 memory 4 scalar 1 control 2 nops 4 scratch");
  // Where the driver reports no scratch memory, this access reads one address for all lanes
  // (selective_scan_f32).
  const std::string uniform =
      "BB1:\n\tbuffer_load_b128 v[40:43], off, s[16:19], s9\n\tv_fma_f32 v1, v40, v2, v1\n"
      "\ts_cbranch_scc0 BB1\n";
  CHECK(described(inner_loop("Assembly", uniform, 64, false)) ==
        "1 in 3: 1 fma 1 memory 1 control");
  CHECK(described(inner_loop("Assembly", uniform, 64)) == "1 in 3: 1 fma 1 control 1 scratch");
  CHECK(described(inner_loop("Assembly",
                             "BB1:\n\tds_store_addtid_b32 v1 offset:4\n\tds_read_b32 v1, v2\n"
                             "\tscratch_load_b32 v1, off, off\n\tv_pk_fma_f16 v1, v2, v3, v1\n"
                             "\ts_nop 0\n\t(then repeated 2 times)\n\ts_cbranch_scc0 BB1\n",
                             64)) == "2 in 8: 1 fma 1 shared 1 control 3 nops 2 scratch");
  CHECK(described(inner_loop("GEN Assembly", excerpt("xehpg_spill"), 32)) ==
        "0.5 in 20: 1 fma 1 shared 7 scalar 1 control 6 nops 4 scratch");
  CHECK(described(inner_loop("Assembly", excerpt("valhall_spill"), 16)) ==
        "4 in 18: 4 fma 4 arithmetic 1 shared 1 control 8 scratch");
  const auto v3d = [](const std::string& text) {
    return described(inner_loop("QPU (MESA_SHADER_COMPUTE)", text, 16));
  };
  std::string spill = excerpt("v3d_spill");
  const char* expected = "1 in 14: 2 fma 1 arithmetic 1 memory 1 control 6 nops 4 scratch";
  CHECK(v3d(spill) == expected);
  // A register holds a part of scratch's base address, and a signal then gives it another value.
  spill.replace(spill.find("ldunifrf.rf4"), 12, "ldunifrf.rf13");
  spill.replace(spill.find("mov tmua, rf14"), 14, "mov tmua, rf13");
  CHECK(v3d(spill) == expected);
}

TEST_CASE("Of several loops, the one with the most multiply-adds of its own is the inner loop") {
  const std::string inner = "BB2:\n\tv_fma_f32 v1, v2, v3, v1\n\ts_cbranch_scc0 BB2\n";
  const auto nested = [&](const char* own) {
    return "BB0:\n\ts_mov_b32 s0, 0\nBB1:\n\tds_read_b32 v2, v4\n" + inner + own +
           "\ts_cbranch_scc0 BB1\n\ts_endpgm\n";
  };
  CHECK(described(inner_loop("Assembly", nested(""), 64)) == "1 in 2: 1 fma 1 control");
  CHECK(described(inner_loop("Assembly", nested("\tv_mul_f32 v1, v1, v5\n"), 64)) ==
        "1 in 2: 1 fma 1 control");
  // The outer loop now has the most multiply-adds of its own; the loop inside it counts as passed
  // once.
  CHECK(described(inner_loop("Assembly", nested("\tv_dot2_f32_f16 v1, v2, v3, v1\n"), 64)) ==
        "3 in 5: 2 fma 1 shared 2 control");
  // Code behind a loop is no part of it, nor is code that jumps out of it.
  CHECK(described(inner_loop("Assembly", "BB0:\n" + inner + "\tv_fma_f32 v1, v2, v3, v1\n", 64)) ==
        "1 in 2: 1 fma 1 control");
}

TEST_CASE("Nothing is said where no loop multiplies, or of texts that are no disassembly") {
  CHECK_FALSE(inner_loop("Assembly", "BB0:\n\tv_fma_f32 v1, v2, v3, v1\n\ts_endpgm\n", 64));
  CHECK_FALSE(inner_loop("Assembly", "BB0:\n\tv_add_f32 v1, v2, v3\n\ts_cbranch_scc0 BB0\n", 64));
  CHECK_FALSE(inner_loop("Assembly", "BB0:\n\tv_mad_u32_u24 v1, v2, v3\n\ts_branch BB0\n", 64));
  CHECK_FALSE(inner_loop("ACO IR", excerpt("rdna3"), 64));
  CHECK_FALSE(inner_loop("Assembly", excerpt("rdna3"), 0));
  for (const char* name :
       {"Assembly", "NAK assembly", "GEN Assembly", "IR3 Assembly", "QPU (CS)"}) {
    INFO(name);
    CHECK_FALSE(inner_loop(name, "", 32));
    CHECK_FALSE(inner_loop(name, "\n", 32));
    CHECK_FALSE(inner_loop(name, "; ( : } -> [\n@\n#l\n(\nadd.u (last\n block", 32));
  }
}
