// Driver workarounds and preferences, as data: drivers, a range of versions, the change, its
// reason, and the case or measurement that shows it. Nothing else in the runtime reads a driver's
// id.
#include <algorithm>
#include <cstring>

#include "runtime/capabilities.h"

namespace mulciber {
namespace {

using Version = std::array<uint32_t, 3>;
constexpr Version kNewest = {0xffffffffu, 0xffffffffu, 0xffffffffu};

struct Quirk {
  std::vector<VkDriverId> drivers;
  Version from, to;                      // inclusive
  FeatureSet grant;                      // traits added, of those that the device can have
  FeatureSet take;                       // features taken away
  std::vector<const char*> denied_rows;  // ids in kernels.def
  const char* reason;
  const char* shown_by;             // the case or measurement that shows it
  bool smallest_subgroups = false;  // required instead of the driver's default size
};

const Quirk kQuirks[] = {
    {{VK_DRIVER_ID_MESA_LLVMPIPE},
     {25, 0, 0},
     kNewest,
     kFastAddress,
     kNothing,
     {},
     "the compiler emits plain loads for buffer addresses, and a bounds check per load for "
     "descriptors",
     "prototype products 64 x 2048 x 768, f16 weights, rates per core doubled: Mesa 25.0 63-72 "
     "GFLOP/s by "
     "address, 43 by descriptor; on 22.3 it is the other way round, 9 against 39"},
    {{VK_DRIVER_ID_MESA_LLVMPIPE},
     {26, 0, 0},
     kNewest,
     kUniformLoads,
     kNothing,
     {},
     "uniform loads by address become one scalar load and a broadcast",
     "the same prototypes on Mesa 26.1: 102 GFLOP/s by uniform loads, 62 by shuffle; on 25.0 "
     "uniform loads "
     "become gathers, 10-28"},
    {{VK_DRIVER_ID_MESA_LLVMPIPE},
     {25, 0, 0},
     {25, 0xffffffffu, 0xffffffffu},
     kNothing,
     kNothing,
     {"attention_decode_f32", "attention_decode_f32_f16", "attention_tile16_f32",
      "attention_tile16_f32_f16", "attention_tile8_f32", "attention_tile8_f32_f16",
      "attention_tile4_f32", "attention_tile4_f32_f16"},
     "compiles for seconds to more than a minute at the first dispatch",
     "first run of attention_decode_f32 on Mesa 25.0: 8 s with heads of 64, 71 s with 256; "
     "attention_tile4_f32 "
     "5 s and 25 s, attention_tile8_f32 7 s with 64; all cases of attention_decode_address_f32 "
     "take 5 s"},
    {{VK_DRIVER_ID_MESA_LLVMPIPE},
     {25, 0, 0},
     {25, 0xffffffffu, 0xffffffffu},
     kNothing,
     kNothing,
     {"layer_norm_registers_f32", "layer_norm_registers_f16"},
     "compiles for many seconds at the first dispatch",
     "layer_norm_registers_f32 on Mesa 25.0: 7 s with 768 columns, 13 s with 1,024; by address 0.2 "
     "s"},
    {{VK_DRIVER_ID_MESA_LLVMPIPE},
     {25, 0, 0},
     {25, 0xffffffffu, 0xffffffffu},
     kNothing,
     kNothing,
     {"matvec_lanes_f32", "matvec_lanes_f32_f16", "matmul_shuffle_1_f32_blocks"},
     "loads of a lane's own are slower by descriptor than by address",
     "one row times 2304 x 768 on one core: Mesa 25.0 f16 3.6 GB/s against 5.5 of "
     "matmul_shuffle_address_f32_f16, q4_0 "
     "10.4 GFLOP/s against 14.2; on 26.1 8.0 to 9.3 GB/s against 6.3, and 15.7 GFLOP/s against "
     "14.2"},
    {{VK_DRIVER_ID_MESA_LLVMPIPE},
     {0, 0, 0},
     kNewest,
     kUnrolling,
     kNothing,
     {},
     "loops marked for unrolling are unrolled, and arrays that they index become registers",
     "layer norm 768 x 768, rows kept in registers: Mesa 22.3 5.1 GB/s against 3.5, 26.1 10.5 to "
     "14.8 "
     "against 7.0; SwiftShader 0.76 against 1.31"},
    {{VK_DRIVER_ID_GOOGLE_SWIFTSHADER},
     {0, 0, 0},
     kNewest,
     kNoUnrolling,
     kNothing,
     {},
     "loops marked for unrolling stay loops, and arrays that they index stay in memory",
     "prototype products 16 x 512 x 256, rates per core doubled: 3.3 GFLOP/s written out, 0.9 at "
     "best with "
     "loops"},
    {{VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS},
     {0, 0, 0},
     kNewest,
     kNothing,
     kLargeTiles,
     {},
     "a register is as wide as the smallest subgroup (8 lanes of 32 bits before Xe2, 16 from then "
     "on) and a thread has 128 of them: a value of a wider subgroup takes two or four, and 64 "
     "sums with their operands are too many even so",
     "compiled by Mesa 26.1 (Windows' driver not measured), instructions and spills : fills. Arc "
     "A770M, matmul_tiled_64_f32: 20,860 and 1255 : 2498 at 32 lanes, 1,980 and 40 : 48 at 16, "
     "1,550 and none at 8; matvec_subgroup_f32 of 8 rows: 4,792 and 222 : 342, 1,962 and 82 : 101, "
     "1,036 and none. Arc B580, matmul_tiled_64_f32: 1,792 and 40 : 48 at 32, 1,322 and none at "
     "16. matmul_tiled_128_f32: 48 : 56 on both at the smallest",
     true},
    {{VK_DRIVER_ID_MESA_TURNIP, VK_DRIVER_ID_QUALCOMM_PROPRIETARY},
     {0, 0, 0},
     kNewest,
     kNothing,
     kLargeTiles,
     {},
     "an invocation has 48 registers of four words at most",
     "compiled by Mesa 26.1 for an Adreno 740 (Qualcomm's driver not measured): "
     "matmul_tiled_128_f32 stores 82 times to private memory, matmul_tiled_64_f32 never"},
    {{VK_DRIVER_ID_MESA_TURNIP, VK_DRIVER_ID_QUALCOMM_PROPRIETARY, VK_DRIVER_ID_MESA_PANVK,
      VK_DRIVER_ID_ARM_PROPRIETARY},
     {0, 0, 0},
     kNewest,
     kFastHalf,
     kNothing,
     {},
     "two products of f16 are one instruction, or take half the time, and there are no matrix "
     "units",
     "compiled by Mesa 26.1 for an Adreno 740: matmul_half_64_f16 1,618 instructions and 385 of "
     "them nops, matmul_tiled_64_f16 2,292 and 876; matvec_half_f16 of one row 294, "
     "matvec_subgroup_f16 "
     "333. By Mesa 25.0 for a Mali-G610: matmul_half_32_f16 734, the same tile in f32 1,271; "
     "matvec_half_f16 of eight rows 1,156, matvec_subgroup_f16 1,492. An Apple M1 gains nothing "
     "(1,298 and 1,134; 444 and 279), for its conversions are free. Qualcomm's and Arm's drivers "
     "not measured"},
    {{VK_DRIVER_ID_MESA_PANVK, VK_DRIVER_ID_ARM_PROPRIETARY, VK_DRIVER_ID_MESA_V3DV},
     {0, 0, 0},
     kNewest,
     kNothing,
     kLargeTiles,
     {},
     "an invocation has 64 registers at most",
     "compiled by Mesa 25.0 for a Mali-G610 and a Raspberry Pi 5, where smaller tiles spill as "
     "well "
     "(below); Arm's driver not measured"},
    {{VK_DRIVER_ID_MESA_PANVK, VK_DRIVER_ID_MESA_V3DV},
     {0, 0, 0},
     kNewest,
     kNothing,
     kNothing,
     {"matmul_tiled_64_f32", "matmul_tiled_64_f32_f16", "matmul_tiled_64_f16",
      "matmul_tiled_64_f32_blocks"},
     "the compiler keeps the sums in memory",
     "compiled by Mesa 25.0. Mali-G610: matmul_tiled_64_f32 loads and stores each of its sums, 5.0 "
     "instructions to a multiply-add, matmul_tiled_f32_d4 none, 3.9. Raspberry Pi 5: 6 s to "
     "compile, against 1.4 s"},
    {{VK_DRIVER_ID_MESA_PANVK},
     {0, 0, 0},
     kNewest,
     kNothing,
     kNothing,
     {"top_k_workgroup_vector", "top_k_workgroup"},
     "the compiler takes ten seconds for the scan of a subgroup, whose reductions it writes out",
     "compiled by Mesa 25.0 for a Mali-G610: top_k_workgroup_vector 10 s, top_k 0.01 s"},
};

struct KindTuning {
  DeviceKind kind;
  Tuning tuning;
  const char* reason;
  const char* shown_by;
};

constexpr Tuning hardware_of(uint32_t units) {
  return {.steps_in_flight = 3,
          .steps_per_submission = 4,
          .hang_seconds = 60,
          .flops_per_s = 20e9,
          .bytes_per_s = 5e9,
          .dispatch_s = 5e-6,
          .units = units};
}

// The first entry of a device's kind counts; the last entry serves all other kinds.
const KindTuning kTunings[] = {
    {DeviceKind::kSoftware,
     {.steps_in_flight = 1,
      .steps_per_submission = 1,
      .hang_seconds = 900,
      .flops_per_s = 2e9,
      .bytes_per_s = 1e9,
      .dispatch_s = 50e-6},
     "it computes on the CPU's cores: a step too many costs more than the gap between two "
     "submissions, and some drivers compile a kernel at its first dispatch; none has a watchdog",
     "first dispatch of attention_decode_f32 with heads of 256 on Mesa 25.0: 71 s; the pace is "
     "that of a plain kernel on two cores"},
    {DeviceKind::kDiscrete, hardware_of(18),
     "it works while the CPU prepares the next submission, and its driver's watchdog is quicker "
     "than a minute",
     "not measured: the pace is what a phone does with a plain kernel. Only Intel's drivers do not "
     "say how many units there are: an Arc B570 has 18 Xe cores, a B580 20, an A770 32"},
    {DeviceKind::kIntegrated, hardware_of(6), "as a discrete GPU, with fewer units",
     "not measured: an Iris Xe has 6 dual subslices, an Adreno 740 6 shader processors, an Apple "
     "M1 8 cores"},
};

bool within(const Version& version, const Quirk& quirk) {
  return version >= quirk.from && version <= quirk.to;
}

}  // namespace

Tuning tuning_of(DeviceKind kind) {
  const auto found = std::ranges::find(kTunings, kind, &KindTuning::kind);
  return (found == std::end(kTunings) ? std::end(kTunings) - 1 : found)->tuning;
}

void apply_quirks(Capabilities& c) {
  for (const Quirk& quirk : kQuirks) {
    if (std::ranges::count(quirk.drivers, c.driver_id) == 0 || !within(c.driver_version, quirk))
      continue;
    if (quirk.smallest_subgroups) require_subgroup_size(c, c.min_subgroup_size);
    FeatureSet grant = quirk.grant;
    if (!c.has(kBufferAddress)) grant &= ~(kFastAddress | kUniformLoads);
    c.features = (c.features | grant) & ~quirk.take;
    for (const char* row : quirk.denied_rows) {
      c.denied_rows.push_back(row);
      c.denied_reasons.push_back(quirk.reason);
    }
  }
}

}  // namespace mulciber
