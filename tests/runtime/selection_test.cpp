// Kernel selection over made-up devices: no Vulkan call.
#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <set>

#include "mulciber/error.h"
#include "ops/attention.h"
#include "ops/matmul.h"
#include "ops/quantize.h"
#include "runtime/kernel.h"
#include "runtime/op.h"
#include "runtime/spirv_modules.h"
#include "tests/catch.h"
#include "tests/support.h"

using namespace mulciber;
using Catch::Matchers::ContainsSubstring;

namespace {

// A phone that offers no more than Vulkan 1.1 requires.
Capabilities least_device() {
  Capabilities c;
  c.name = "least";
  c.features = kGpu;
  c.max_storage_range = 128 << 20;
  c.max_push_constants = 128;
  c.max_shared_memory = 16384;
  c.max_invocations = c.max_local_size = 128;
  c.max_groups = {65535, 65535, 65535};
  c.max_storage_buffers = 4;
  c.storage_alignment = 256;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = 16;
  return c;
}

Capabilities large_gpu() {
  Capabilities c = least_device();
  c.name = "large";
  c.features = kGpu | kFloat16 | kStorage16 | kStorage8 | kSubgroupArithmetic | kSubgroupShuffle |
               kBufferAddress | kCooperativeMatrix | kMatrix16x16x16F16 | kSubgroupSizeControl;
  c.max_push_constants = 256;
  c.max_shared_memory = 49152;
  c.max_invocations = c.max_local_size = 1024;
  c.max_storage_buffers = 1000;
  c.subgroup_size = 32;
  return c;
}

}  // namespace

TEST_CASE("Every feature has a bit of its own") {
  FeatureSet all = kNothing;
  for (const auto& [feature, name, mask] : feature_names()) {
    INFO(name);
    CHECK(std::has_single_bit(static_cast<FeatureSet>(feature)));
    CHECK((all & feature) == kNothing);
    all |= feature;
  }
  // A feature without a name is in no list: the header's groups must consist of named features.
  CHECK((all & (kMatrixUnits | kFastHalf)) == (kMatrixUnits | kFastHalf));
}

TEST_CASE("Every op and storage type has a row that runs on the least device, for any shape") {
  std::map<std::pair<Op, std::pair<DataType, DataType>>, bool> served;
  for (const Kernel& row : kernels()) {
    for (const KernelTypes& types : concrete_types(row.types)) {
      bool& found = served[{row.op, {types.activation, types.weight}}];
      found = found || (row.shape == kAnyShape && row.made_for == kAnyDevice &&
                        why_not_runnable(row, least_device()).empty());
    }
  }
  for (const auto& [key, found] : served) {
    INFO(name_of(key.first) << " " << name_of(key.second.first) << " "
                            << name_of(key.second.second));
    CHECK(found);
  }
}

TEST_CASE("Row ids are unique, and every row has a module unless the build left some out") {
  std::set<std::string> ids;
  for (const Kernel& row : kernels()) {
    CHECK(ids.insert(row.id).second);
    CHECK(row.tolerance >= 0);
    CHECK(find_kernel(row.id) == &row);
  }
  CHECK(find_kernel("no_such_row") == nullptr);

  // A build without pinned modules lacks the modules for features of the shader compiler that a
  // row's DEFINES name; then no row that names the feature has a module.
  std::map<std::string, std::set<bool>> compiled;  // by feature; "" where a row names none
  size_t rows = 0;
  std::ifstream file(tests::source_dir() / "shaders/kernels.def");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("KERNEL(")) continue;
    ++rows;
    const std::string id = line.substr(7, line.find(',') - 7);
    const Kernel* row = find_kernel(id);
    INFO(id);
    REQUIRE(row != nullptr);
    const bool has_module = !row->spirv.empty();
    const size_t feature = line.find("GLSLANG_");
    if (feature == std::string::npos || *pinned_glslang() != 0) {
      CHECK(has_module);
    } else {
      compiled[line.substr(feature, line.find_first_of(",)", feature) - feature)].insert(
          has_module);
    }
    if (has_module) CHECK(row->reflection.buffer_count > 0);
  }
  CHECK(rows == kernels().size());
  for (const auto& [feature, answers] : compiled) {
    INFO(feature);
    CHECK(answers.size() == 1);
  }
}

TEST_CASE("A row on matrix units is refused where its tile has more blocks than subgroups") {
  // The largest subgroup size with which a workgroup still has a subgroup for each block.
  const std::map<std::string, uint32_t> most_lanes = {
      {"matmul_coopmat_128_f32_f16", 128},
      {"matmul_coopmat_64_f32_f16", 64},
      {"matmul_coopmat_8x16_128_f32_f16", 64},
      {"matmul_coopmat_8x16_64_f32_f16", 32},
      {"matmul_coopmat_8x8_64_f32_f16", 32},
      {"matmul_coopmat_8_f32_f16", 8},
      {"matmul_coopmat_dot_128_q8_1_blocks", 128},
      {"matmul_coopmat_dot_64_q8_1_blocks", 64},
      {"matmul_coopmat_dot_8x16_64_q8_1_blocks", 32},
      {"matmul_coopmat_dot_8x8_64_q8_1_blocks", 32},
      {"attention_coopmat_128_f32_f16", 64},
      {"attention_coopmat_256_f16", 64},
      {"attention_coopmat_8x16_64_f32_q8_0", 32},
      {"matmul_tiled_64_f32_f16", 128},  // uses no matrix units
  };
  for (const auto& [id, most] : most_lanes) {
    const Kernel* row = find_kernel(id);
    REQUIRE(row != nullptr);
    if (row->spirv.empty()) continue;
    Capabilities device = large_gpu();
    device.features |= row->needs;
    for (uint32_t lanes : {8, 16, 32, 64, 128}) {
      INFO(id << " with " << lanes << " lanes");
      device.subgroup_size = device.min_subgroup_size = device.max_subgroup_size = lanes;
      const std::string reason = why_not_runnable(*row, device);
      if (lanes <= most)
        CHECK(reason.empty());
      else
        CHECK_THAT(reason, ContainsSubstring(" subgroups of a workgroup's "));
    }
  }
}

TEST_CASE("A refused row says what is missing") {
  for (const Kernel& row : kernels()) {
    if (row.spirv.empty()) {
      CHECK_THAT(why_not_runnable(row, large_gpu()), ContainsSubstring("not in this build"));
    } else if (FeatureSet missing = row.needs & ~least_device().features) {
      CHECK_THAT(why_not_runnable(row, least_device()),
                 ContainsSubstring(describe_features(missing)));
    }
  }
  Capabilities denied = large_gpu();
  const Kernel& row = kernels().back();
  denied.denied_rows.push_back(row.id);
  denied.denied_reasons.push_back("wrong results");
  CHECK_THAT(why_not_runnable(row, denied), ContainsSubstring("wrong results"));
}

TEST_CASE("Selection takes the first row that serves and explains the ones before it") {
  for (const Capabilities& device : {least_device(), large_gpu()}) {
    for (const Kernel& row : kernels()) {
      const Problem problem{row.op, row.types, row.shape};
      INFO(row.id << " on the " << device.name << " device");
      const Selection selection = select_kernel(device, problem);
      // The expected row, by definition: the first one made for the device whose conditions are
      // met.
      const Kernel* first = nullptr;
      std::vector<const Kernel*> before;
      for (const Kernel& candidate : kernels()) {
        if (first || candidate.op != row.op) continue;
        const bool serves =
            device.has(candidate.made_for) && why_not(candidate, device, problem).empty();
        if (serves)
          first = &candidate;
        else
          before.push_back(&candidate);
      }
      REQUIRE(first != nullptr);
      CHECK(selection.kernel == first);
      std::vector<const Kernel*> explained;
      for (const Refusal& refusal : selection.passed_over) {
        explained.push_back(refusal.kernel);
        CHECK_FALSE(refusal.reason.empty());
      }
      CHECK(explained == before);
    }
  }
}

TEST_CASE("Where rows were tested, one that passed goes before a better one without a verdict") {
  Capabilities device = large_gpu();
  for (const Kernel& row : kernels()) {
    const Problem problem{row.op, row.types, row.shape};
    device.passed_rows.clear();
    const Kernel* best = select_kernel(device, problem).kernel;
    REQUIRE(best != nullptr);
    if (best == &row || !why_not_runnable(row, device).empty() || !device.has(row.made_for))
      continue;
    INFO(row.id << " against " << best->id);
    device.passed_rows = {row.id};
    const Selection tested = select_kernel(device, problem);
    CHECK(tested.kernel == &row);
    CHECK(std::ranges::any_of(tested.passed_over, [&](const Refusal& refusal) {
      return refusal.kernel == best && refusal.reason == "is not yet tested on this driver";
    }));
    device.passed_rows = {"of another op"};
    const Selection none = select_kernel(device, problem);
    CHECK(none.kernel == best);
    CHECK(std::ranges::all_of(none.passed_over,
                              [&](const Refusal& refusal) { return refusal.kernel < best; }));
  }
}

TEST_CASE("A problem that no row serves is an error with every refusal") {
  Capabilities nothing = least_device();
  nothing.max_shared_memory = 0;
  nothing.max_invocations = 0;
  Problem problem{Op::kMatmul, {DataType::kF32, DataType::kF32}, kAnyShape};
  CHECK_THROWS_AS(require_kernel(nothing, problem), KernelError);
  CHECK_THROWS_WITH(require_kernel(nothing, problem), ContainsSubstring("invocations"));
}

TEST_CASE("No software device is served by a row made for hardware, and the other way round") {
  Capabilities software = large_gpu();
  software.kind = DeviceKind::kSoftware;
  software.features =
      (software.features & ~kGpu) | kCpu | kMatrix8x8x8F16 | kFastAddress | kUniformLoads;
  for (const Kernel& row : kernels()) {
    const Problem problem{row.op, row.types, row.shape};
    INFO(row.id);
    CHECK_FALSE(require_kernel(software, problem).made_for & kGpu);
    CHECK_FALSE(require_kernel(large_gpu(), problem).made_for & kCpu);
  }
}

TEST_CASE("Depth and keys are split over workgroups where tiles leave half of a GPU idle") {
  Capabilities device = large_gpu();
  device.compute_units = 60;
  const auto product = [&](uint64_t rows, uint64_t columns, uint64_t depth) {
    ProgramBuilder builder(device, "test");
    matmul(builder, builder.activation({rows, depth}),
           builder.activation({columns, depth}, DataType::kF16));
    return builder.nodes();
  };
  // There are 8 tiles of 64 x 64, and 60 / 8 = 7 parts.
  std::vector<Node> nodes = product(16, 512, 8192);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].groups == std::array<uint32_t, 3>{8, 1, 7});
  CHECK(nodes[1].kernel->op == Op::kSplitKReduce);
  CHECK(product(16, 4096, 8192).size() == 1);  // 64 tiles
  CHECK(product(16, 512, 256).size() == 1);    // too little depth to split
  CHECK(product(4, 512, 8192).size() == 1);    // lanes already split the depth
  device.compute_units = 0;                    // not reported: the usual number for the kind
  device.tuning.units = 6;
  CHECK(product(16, 512, 8192).size() == 1);
  device.tuning.units = 16;
  CHECK(product(16, 512, 8192).size() == 2);
  device.features = (device.features & ~kGpu) | kCpu;
  CHECK(product(16, 512, 8192).size() == 1);

  device = large_gpu();
  device.compute_units = 60;
  const auto attended = [&](uint64_t queries, uint64_t keys) {
    ProgramBuilder builder(device, "test");
    const Tensor kv = builder.activation({1, keys, 2 * 4 * 64}, DataType::kF16);
    attention(builder, {builder.activation({1, queries, 16 * 64}), 0}, {kv, 0}, {kv, 4 * 64},
              {.heads = 16, .kv_heads = 4, .head_size = 64, .value_size = 64, .causal = true});
    return builder.nodes();
  };
  // There are four key heads, and each has one tile of 64 queries from the four heads that share
  // it.
  nodes = attended(16, 4096);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].groups == std::array<uint32_t, 3>{15, 4, 1});
  CHECK(nodes[1].kernel->op == Op::kAttentionCombine);
  CHECK(attended(512, 4096).size() == 1);
  CHECK(attended(16, 300).size() == 1);
}

TEST_CASE("Hardware has attention rows of its own for few and for many queries") {
  for (KernelTypes types :
       {KernelTypes{DataType::kF32, DataType::kF32}, KernelTypes{DataType::kF32, DataType::kF16},
        KernelTypes{DataType::kF16, DataType::kF16}}) {
    for (ShapeFacts queries : {kOneQuery, kManyQueries}) {
      const Problem problem{Op::kAttention, types,
                            kDepthMultipleOf4 | kHeadSizeAtMost64 | kHeadSizeAtMost128 |
                                kContiguousKeys | kWholeTiles | queries};
      INFO(describe_shape_facts(problem.facts));
      CHECK(require_kernel(large_gpu(), problem).made_for == kGpu);
    }
  }
}

TEST_CASE("Matrices of workgroups and of bf16 serve where the device has them") {
  const auto chosen = [](FeatureSet features, DataType weight, uint64_t rows,
                         FeatureSet without = kNothing) {
    Capabilities c = large_gpu();
    c.features = (c.features & ~without) | features;
    const ShapeFacts facts = kRowsAbove8 | kColumnsAtLeast256 | kDepthMultipleOf4 |
                             kDepthMultipleOf8 | (rows > 64 ? kRowsAbove64 : 0u);
    return std::string(select_kernel(c, {Op::kMatmul, {DataType::kF32, weight}, facts}).kernel->id);
  };
  constexpr FeatureSet kWorkgroups = kWorkgroupMatrix256 | kWorkgroupMatrix128;
  CHECK(chosen(kNothing, DataType::kF16, 128) == "matmul_coopmat_128_f32_f16");
  CHECK(chosen(kWorkgroups, DataType::kF16, 128) == "matmul_tensor_128_f32_f16");
  CHECK(chosen(kWorkgroups, DataType::kF16, 64) == "matmul_tensor_64_f32_f16");
  // A driver reads blocks number by number, which took longer on an H200.
  CHECK(chosen(kWorkgroups, DataType::kQ4_K, 128) == "matmul_coopmat_128_f32_blocks");
  CHECK(chosen(kWorkgroups, DataType::kQ4_K, 128, kHalfMatrices) == "matmul_tensor_128_f32_blocks");
  CHECK(chosen(kWorkgroupMatrix128, DataType::kQ4_K, 128, kHalfMatrices) ==
        "matmul_tensor_64_f32_blocks");
  // bf16 has the range of f32, and f16 has not.
  CHECK(chosen(kWorkgroups, DataType::kBF16, 128) == "matmul_tensor_128_f32_f16");
  CHECK(chosen(kWorkgroups | kMatrix16x16x16BF16, DataType::kBF16, 128) ==
        "matmul_coopmat_128_f32_bf16");
  CHECK(chosen(kMatrix8x16x16BF16, DataType::kBF16, 64) == "matmul_coopmat_8x16_64_f32_bf16");
  CHECK(chosen(kMatrix8x16x16BF16, DataType::kF16, 64) == "matmul_coopmat_64_f32_f16");
}

TEST_CASE("Integers are multiplied on matrix units that take them, in whatever size") {
  const auto chosen = [](FeatureSet features, uint64_t rows) {
    Capabilities c = large_gpu();
    c.features |= features | kIntegerDot | kFastIntegerDot | kLargeTiles;
    const ShapeFacts facts = kRowsAbove8 | kColumnsAtLeast256 | (rows > 64 ? kRowsAbove64 : 0u);
    const Problem problem{Op::kMatmul, {DataType::kQ8_1, DataType::kQ4_0}, facts};
    return std::string(select_kernel(c, problem).kernel->id);
  };
  CHECK(chosen(kNothing, 128) == "matmul_dot_64_q8_1_blocks");
  CHECK(chosen(kMatrix16x16x16I8, 128) == "matmul_coopmat_dot_128_q8_1_blocks");
  CHECK(chosen(kMatrix16x16x16I8, 64) == "matmul_coopmat_dot_64_q8_1_blocks");
  CHECK(chosen(kMatrix16x16x32I8, 128) == "matmul_coopmat_dot_16x16x32_128_q8_1_blocks");
  CHECK(chosen(kMatrix16x16x32I8, 64) == "matmul_coopmat_dot_16x16x32_64_q8_1_blocks");
  CHECK(chosen(kMatrix8x16x32I8, 128) == "matmul_coopmat_dot_8x16_128_q8_1_blocks");
  CHECK(chosen(kMatrix8x16x32I8, 64) == "matmul_coopmat_dot_8x16_64_q8_1_blocks");
  CHECK(chosen(kMatrix8x8x32I8, 128) == "matmul_coopmat_dot_8x8_64_q8_1_blocks");
}

TEST_CASE("Many rows are multiplied as halves where matrix units take halves alone") {
  const auto pays = [](FeatureSet features, uint64_t rows) {
    Capabilities c = least_device();
    c.features |= kIntegerDot | kFastIntegerDot | features;
    return integers_pay(c, rows);
  };
  for (const FeatureSet halves : {kMatrix16x16x16F16, kMatrix8x16x16F16, kMatrix8x8x16F16,
                                  kMatrix8x8x8F16, kWorkgroupMatrix256, kWorkgroupMatrix128}) {
    INFO(describe_features(halves));
    CHECK(pays(halves, 8));
    CHECK_FALSE(pays(halves, 9));
    CHECK_FALSE(pays(halves | kMatrix16x16x16I8, 9));  // no deeper than half matrices
    for (const FeatureSet integers : {kMatrix16x16x32I8, kMatrix8x16x32I8, kMatrix8x8x32I8}) {
      INFO(describe_features(integers));
      CHECK(pays(halves | integers, 9));
    }
  }
  CHECK(pays(kNothing, 9));
  CHECK(pays(kFastHalf, 9));
  Capabilities software = least_device();
  software.features = kCpu | kIntegerDot | kMatrix8x8x8F16;
  CHECK(integers_pay(software, 512));
}
