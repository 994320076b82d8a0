// Attention that appends its position's key and value: the bits are those of two dispatches, and a
// layer has one dispatch fewer.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "conformance/case_program.h"
#include "conformance/ops/rope_reference.h"
#include "ops/append_attention.h"
#include "ops/append_cache.h"
#include "runtime/op.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"

using namespace mulciber;
using namespace mulciber::conformance;
using namespace mulciber::tests;

namespace {

/// A row that appends, and the rows it replaces: rotation, or append where nothing rotates.
struct AppendRows {
  const char *folded, *attention, *rope, *append;
};

struct Kind {
  uint32_t heads, kv_heads, head_size, rotary_size;
  bool interleaved = false, gains = false;
  uint32_t window = 0;
};

constexpr uint64_t kRows = 3, kContext = 1100;

/// A step of attention at positions near the boundaries of splits, in one dispatch or in two.
OpCase step_of(const Kind& kind, const AppendRows& rows, bool in_one) {
  const KernelTypes types = find_kernel(rows.folded)->types;
  ControlWords words(2, 0xffffffff);
  const ControlArray<uint32_t> positions = words.append(std::vector<uint32_t>{1023, 256, 1099});
  const ControlArray<uint32_t> counters =
      words.append(std::vector<uint32_t>(kRows * kind.heads, 0));
  const uint64_t columns = (kind.heads + 2ull * kind.kv_heads) * kind.head_size;
  OpCase c;
  c.types = types;
  c.inputs = {normal_input({kRows, 1, columns}, types.activation),
              normal_input({kRows, kContext, 2ull * kind.kv_heads * kind.head_size}, types.weight),
              angle_input(kContext, std::max(kind.rotary_size, 4u)), words_input(words.words()),
              normal_input({2, kind.head_size}, DataType::kF32)};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    const AttentionOptions options = {.heads = kind.heads,
                                      .kv_heads = kind.kv_heads,
                                      .head_size = kind.head_size,
                                      .value_size = kind.head_size,
                                      .scale = static_cast<float>(1 / std::sqrt(kind.head_size)),
                                      .causal = true,
                                      .window = kind.window,
                                      .control = AttentionControl{.tensor = inputs[3],
                                                                  .key_counts = positions,
                                                                  .key_count_extra = 1,
                                                                  .split_counters = counters}};
    std::optional<RopeOptions> rope;
    if (kind.rotary_size > 0)
      rope = RopeOptions{.heads = kind.heads,
                         .kv_heads = kind.kv_heads,
                         .head_size = kind.head_size,
                         .rotary_size = kind.rotary_size,
                         .interleaved = kind.interleaved,
                         .angles = inputs[2],
                         .gains = kind.gains ? std::optional(inputs[4]) : std::nullopt,
                         .epsilon = kRopeEpsilon,
                         .control = inputs[3],
                         .positions = positions};
    const Tensor &qkv = inputs[0], &cache = inputs[1];
    for (const char* row : {rows.folded, rows.attention, rows.rope, rows.append})
      builder.force(*find_kernel(row));
    if (in_one) return std::vector{append_attention(builder, qkv, cache, rope, options), cache};
    if (rope) {
      rope_append(builder, qkv, cache, *rope);
    } else {
      append_cache(builder, qkv, cache,
                   {.first_column = kind.heads * kind.head_size,
                    .control = inputs[3],
                    .positions = positions});
    }
    return std::vector{
        attention(builder, {qkv, 0}, {cache, 0}, {cache, kind.kv_heads * kind.head_size}, options),
        cache};
  };
  return c;
}

std::vector<std::vector<std::byte>> outputs_of(const OpCase& c) {
  CaseProgram program(shared_device(), c, nullptr);
  program.fill(draw_inputs(c, 0));
  program.program().run();
  return program.read_outputs();
}

/// How two outputs differ, without their numbers, which are thousands.
std::string difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  if (a.size() != b.size()) return fmt::format("{} and {} bytes", a.size(), b.size());
  size_t count = 0, first = a.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (count++ == 0) first = i;
  }
  return count == 0 ? "" : fmt::format("{} of {} bytes, the first at {}", count, a.size(), first);
}

std::map<std::string, int> dispatches_of_step(const DecoderModel& model) {
  SequenceSlots slots = slots_of(model.network(), 1, 32);
  std::map<std::string, int> dispatches;
  for (const Node& node : slots.step_program().nodes())
    dispatches[node.label.substr(0, std::string("layers.0").size())]++;
  return dispatches;
}

}  // namespace

TEST_CASE("Attention appends and attends to the bits of two dispatches") {
  const AppendRows halves = {"append_attention_group_f32_f16", "attention_group_f32_f16",
                             "rope_append_f32_f16", "append_cache_f32_f16"},
                   blocks = {"append_attention_group_f32_q8_0", "attention_group_f32_q8_0",
                             "rope_append_f32_q8_0", "append_cache_f32_q8_0"},
                   activations = {"append_attention_group_f16", "attention_group_f16",
                                  "rope_append_f16", "append_cache_f16"};
  // Software drivers take seconds to compile each kind.
  const auto [rows, kind] =
      GENERATE_COPY(std::pair(halves, Kind{9, 3, 64, 64}), std::pair(halves, Kind{2, 2, 32, 0}),
                    std::pair(blocks, Kind{6, 1, 96, 64, false, true, 300}),
                    std::pair(activations, Kind{4, 2, 32, 32, true}));
  for (const char* row : {rows.folded, rows.attention, rows.rope, rows.append}) {
    const std::string reason = why_not_runnable(*find_kernel(row), shared_device().capabilities());
    if (!reason.empty()) MULCIBER_SKIP(fmt::format("{} {}", row, reason));
  }
  INFO(rows.folded << ", heads of " << kind.head_size << ", of which " << kind.rotary_size
                   << " rotate");
  const auto in_one = outputs_of(step_of(kind, rows, true)),
             in_two = outputs_of(step_of(kind, rows, false));
  REQUIRE(in_one.size() == in_two.size());
  for (size_t i = 0; i < in_one.size(); ++i) {
    INFO((i == 0 ? "the result" : "the cache"));
    CHECK(difference(in_one[i], in_two[i]) == "");
  }
}

TEST_CASE("A decoder layer that folds norms and appends decodes in five dispatches") {
  const auto [type, cache] = GENERATE(std::pair<std::string, DataType>("F16", DataType::kF16),
                                      std::pair<std::string, DataType>("Q4_K_M", DataType::kQ8_0));
  const std::filesystem::path file = fixtures_dir() / ("gguf/tiny-" + type + ".gguf");
  if (!std::filesystem::exists(file)) MULCIBER_SKIP("the reference models are not here");
  const std::string reason = why_not_runnable(*find_kernel("append_attention_group_f32_f16"),
                                              shared_device().capabilities());
  if (!reason.empty()) MULCIBER_SKIP("rows that append " + reason);
  const ModelOptions apart_options = {.folded_appends = false, .cache = cache},
                     folded_options = {
                         .folded_norms = true, .folded_appends = true, .cache = cache};
  const auto apart = open_decoder(file, apart_options), folded = open_decoder(file, folded_options);
  const std::map<std::string, int> few = dispatches_of_step(*folded);
  // The last layer also has the norm before the output product.
  CHECK(few.at("layers.0") == 5);
  CHECK(few.at("layers.1") == 6);
  CHECK(few.count("first_norm") == 0);
  const std::vector<uint32_t> prompt = prompt_of(9, 7);
  CHECK(alone(*folded, prompt, 12) == alone(*apart, prompt, 12));
}
