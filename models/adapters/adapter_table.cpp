#include "models/adapters/adapter_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/networks/decoder_network.h"

namespace mulciber {

uint64_t RotatedRows::in_adapter(uint64_t row) const {
  const uint64_t within = row % head, half = rotated / 2;
  if (model == adapter || within >= rotated) return row;
  return row - within +
         (adapter == RotaryPairs::kNeighbours ? within % half * 2 + within / half
                                              : within % 2 * half + within / 2);
}

const WeightSpec* AdapterTable::find(const std::string& weight) const {
  const auto found = std::ranges::find(table, weight, &WeightSpec::name);
  return found == table.end() ? nullptr : &*found;
}

namespace {

/// Changes names of experts with separate matrices to the joint parameters that transformers uses
/// in memory since release 5.
DecoderFiles with_parameters(DecoderFiles files) {
  files.names.router = "mlp.gate";
  files.names.expert_gate_up = "mlp.experts.gate_up_proj";
  files.names.expert_down = "mlp.experts.down_proj";
  files.gates_above = true;
  return files;
}

void add_table(std::vector<AdapterTable>& tables, const DecoderConfig& config,
               const OtherDecoderFiles& other, bool parameters) {
  const DecoderAttention& attention = config.attention;
  const auto differs = [&](const RopeConfig& rope) { return rope.pairs != other.pairs; };
  const bool reordered = std::ranges::any_of(config.ropes, differs);
  // Latent attention takes heads apart to put the rotated elements first.
  if (reordered && attention.latent) return;
  DecoderConfig as_other = config;
  as_other.files = other.files;
  AdapterTable& result = tables.emplace_back(AdapterTable{.table = decoder_weight_table(as_other),
                                                          .rotated = {},
                                                          .architecture = other.architecture,
                                                          .parameters = parameters});
  if (!reordered) return;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    // Converters reorder the heads of every layer, also of layers without rotary embeddings.
    const RopeConfig& rope = config.ropes[config.layers[i].rope.value_or(0)];
    result.rotated.emplace(fmt::format("layers.{}.qkv.weight", i),
                           RotatedRows{.rows = attention.query_columns() + attention.key_columns(),
                                       .head = attention.head_size,
                                       .rotated = rope.rotated,
                                       .model = rope.pairs,
                                       .adapter = other.pairs});
  }
}

}  // namespace

std::vector<AdapterTable> other_adapter_tables(const DecoderConfig& config) {
  std::vector<AdapterTable> tables;
  const auto& other = config.other_files;
  if (other) add_table(tables, config, *other, false);
  const bool folder = !other || !other->architecture.empty();
  OtherDecoderFiles peft = {.files = config.files, .architecture = {}};
  if (folder && !config.ropes.empty()) peft.pairs = config.ropes.front().pairs;
  if (!folder) peft = *other;
  const char* gate = peft.files.names.expert_gate;
  if (config.feed_forward.experts && gate) {
    peft.files = with_parameters(peft.files);
    add_table(tables, config, peft, true);
  }
  return tables;
}

}  // namespace mulciber
