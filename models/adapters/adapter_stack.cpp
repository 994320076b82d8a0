#include "models/adapters/adapter_stack.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "checkpoints/json.h"
#include "models/core/device_weights.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Matrix products read eight f16 values at a time.
constexpr uint32_t kScaleStep = 8;

/// Whether A, and B times the factor, are exact in f16.
bool is_half(const LowRankUpdate& update) {
  int exponent = 0;
  const bool power_of_two = std::abs(std::frexp(update.factor, &exponent)) == 0.5;
  return update.down.tensor->type == CheckpointType::kF16 &&
         update.up.tensor->type == CheckpointType::kF16 && power_of_two;
}

const WeightSpec* find_source(const WeightTable& table, const std::string& name) {
  const auto spec = std::ranges::find_if(table, [&](const WeightSpec& weight) {
    return weight.sources.size() == 1 && std::ranges::count(weight.sources[0].names, name) > 0;
  });
  return spec == table.end() ? nullptr : &*spec;
}

/// The checkpoint's tensor of a weight that other files call `name`; null: it has none with rows in
/// that order.
const CheckpointTensor* find_alike(const std::string& name, const AdapterTable& other,
                                   const WeightTable& table, const Checkpoint& checkpoint) {
  const WeightSpec* theirs = find_source(other.table, name);
  if (!theirs || other.rotated.contains(theirs->name)) return nullptr;
  const auto own = std::ranges::find(table, theirs->name, &WeightSpec::name);
  if (own == table.end() || own->sources.size() != 1) return nullptr;
  for (const std::string& each : own->sources[0].names)
    if (const CheckpointTensor* tensor = checkpoint.find(each)) return tensor;
  return nullptr;
}

}  // namespace

AdapterStack::AdapterStack(const WeightTable& table, std::vector<OpenAdapter> adapters,
                           const Checkpoint& checkpoint, const Options& options)
    : opened_(std::move(adapters)) {
  find_tables(checkpoint, options.others);
  uint32_t first = 0;
  for (const OpenAdapter& adapter : opened_) {
    const size_t of = table_of_[static_cast<size_t>(&adapter - opened_.data())];
    adapter.files->compare_copies([&](const std::string& name) {
      return of == 0 ? checkpoint.find(name)
                     : find_alike(name, options.others[of - 1], table, checkpoint);
    });
    const uint32_t count = (adapter.files->rank() + kScaleStep - 1) / kScaleStep * kScaleStep;
    adapters_.push_back({adapter.name, first, count, adapter.scale});
    first += count;
    found_.emplace_back(adapter.files->updates().size());
  }
  const auto is_own = [&](const WeightSpec& spec) {
    return std::ranges::count(table, spec.name, &WeightSpec::name) > 0;
  };
  for (const WeightSpec& spec : table) add_target(spec, true, options);
  if (options.other_forms)
    for (const AdapterTable& other : options.others)
      for (const WeightSpec& spec : other.table)
        if (!is_own(spec)) add_target(spec, false, options);
  check_found(options.others);
}

void AdapterStack::add_target(const WeightSpec& spec, bool own, const Options& options) {
  const size_t tables = options.others.size() + 1;
  Target target = {.shape = spec.shape};
  if (spec.role == WeightRole::kExperts) target.experts = spec.shape[0];
  target.rows.resize(tables);
  for (size_t t = own ? 0 : 1; t < tables; ++t) {
    if (std::ranges::count(table_of_, t) == 0) continue;
    const WeightSpec* known = t == 0 ? &spec : options.others[t - 1].find(spec.name);
    if (!known || known->shape != spec.shape) continue;
    Layout layout = find_layout(*known, t, options.takes);
    if (layout.parts.empty()) continue;
    if (t > 0) {
      const auto& reordered = options.others[t - 1].rotated;
      const auto rotated = reordered.find(spec.name);
      if (rotated != reordered.end())
        for (uint64_t row = 0; row < std::min(rotated->second.rows, layout.rows.size()); ++row)
          layout.rows[row].in_file = rotated->second.in_adapter(layout.rows[row].in_file);
    }
    join(target, std::move(layout), t);
  }
  if (target.parts.empty()) return;
  place(target, options.half);
  targets_.emplace(spec.name, std::move(target));
}

void AdapterStack::find_tables(const Checkpoint& checkpoint, std::span<const AdapterTable> others) {
  const std::string own = checkpoint.gguf() ? checkpoint.gguf()->architecture() : std::string();
  for (const OpenAdapter& adapter : opened_) {
    const std::string& made_for = adapter.files->architecture();
    const auto find = [&](bool parameters) {
      const auto table = std::ranges::find_if(others, [&](const AdapterTable& other) {
        return other.architecture.empty() == made_for.empty() && other.parameters == parameters;
      });
      return table == others.end() ? 0 : static_cast<size_t>(table - others.begin()) + 1;
    };
    size_t table = adapter.files->parameters() ? find(true) : 0;
    const bool other = made_for.empty() != own.empty();
    if (table == 0 && other) {
      table = find(false);
      if (table == 0)
        throw ModelError(
            adapter.files->where(),
            fmt::format("is {}, and what this model's matrices are called there is not known",
                        made_for.empty() ? "PEFT's" : "a GGUF file"),
            fmt::format("take an adapter {}",
                        made_for.empty() ? "of llama.cpp's convert_lora_to_gguf.py" : "of PEFT's"));
    }
    const std::string& expected = table > 0 ? others[table - 1].architecture : own;
    if (made_for != expected)
      throw ModelError(adapter.files->where(),
                       fmt::format("was made for the architecture {}, the model's is {}",
                                   printable(made_for), printable(expected)),
                       "take the model that its page names");
    table_of_.push_back(table);
  }
}

void AdapterStack::check_found(std::span<const AdapterTable> others) const {
  for (size_t a = 0; a < opened_.size(); ++a) {
    const auto missing = std::ranges::find(found_[a], false);
    if (missing == found_[a].end()) continue;
    const LowRankUpdate& update =
        opened_[a].files->updates()[static_cast<size_t>(missing - found_[a].begin())];
    const auto is_it = [&](const WeightSource& source) {
      return std::ranges::count(source.names, update.weight) > 0;
    };
    const bool known = table_of_[a] > 0 &&
                       std::ranges::any_of(others[table_of_[a] - 1].table, [&](const auto& spec) {
                         return std::ranges::any_of(spec.sources, is_it);
                       });
    const std::string weight = printable(update.weight);
    if (known)
      throw ModelError(where_in(opened_[a], *update.down.tensor),
                       fmt::format("changes `{}`, which the model's file does not hold as a matrix "
                                   "of its own",
                                   weight),
                       "leave adapters beside the weights, or take the model in the adapter's "
                       "format");
    if (update.weight == "lm_head.weight" || update.weight == "output.weight")
      throw ModelError(where_in(opened_[a], *update.down.tensor),
                       fmt::format("changes `{}`, and the model has no such matrix: where its "
                                   "output is its embedding, adapters change neither",
                                   weight),
                       "merge it into its model with PEFT (merge_and_unload)");
    throw ModelError(
        where_in(opened_[a], *update.down.tensor),
        fmt::format("changes `{}`, and the model has no such matrix of a product", weight),
        "it was made for another model: take the one that its page names");
  }
}

void AdapterStack::place(Target& target, bool half) const {
  uint32_t begin = UINT32_MAX, end = 0;
  bool narrow = true;
  for (const Part& part : target.parts) {
    for (size_t a = 0; a < opened_.size(); ++a) {
      const LowRankUpdate* update = part.updates[a].update;
      if (!update) continue;
      begin = std::min(begin, adapters_[a].first);
      end = std::max(end, adapters_[a].first + adapters_[a].count);
      narrow = narrow && (half || is_half(*update));
    }
  }
  const uint64_t all = uint64_t{end - begin} * target.of_expert, columns = target.shape.columns();
  target.update = {.down = {all, columns},
                   .up = {target.shape.rows(), all},
                   .type = narrow ? DataType::kF16 : DataType::kF32,
                   .first = begin,
                   .count = end - begin};
  if (target.shape.rank() < 3) return;
  target.update.down = {target.experts, all, columns};
  target.update.up = {target.experts, target.shape[1], all};
}

NetworkAdapters AdapterStack::beside() const {
  NetworkAdapters all = {.adapters = adapters_, .updates = {}};
  for (const auto& [weight, target] : targets_) all.updates.emplace(weight, target.update);
  return all;
}

uint64_t AdapterStack::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [weight, target] : targets_) {
    const AdapterUpdate& update = target.update;
    for (const Shape& shape : {update.down, update.up})
      bytes += added_weight_bytes(shape, update.type);
  }
  return bytes;
}

AdapterStack::Values AdapterStack::read_values(const Target& target, bool up) const {
  Values values;
  for (const Part& part : target.parts) {
    for (size_t a = 0; a < opened_.size(); ++a) {
      const PartUpdate& from = part.updates[a];
      if (!from.update) continue;
      const CheckpointTensor* tensor = (up ? from.up() : from.down()).tensor;
      if (const auto [found, is_new] = values.try_emplace(tensor); is_new)
        found->second = opened_[a].files->values(*tensor);
    }
  }
  return values;
}

const AdapterStack::Row* AdapterStack::row_of(const Target& target, size_t adapter,
                                              uint64_t row) const {
  const std::vector<Row>& rows = target.rows[table_of_[adapter]];
  if (rows.empty() || rows[row].part == kNoPart) return nullptr;
  return target.parts[rows[row].part].updates[adapter].update ? &rows[row] : nullptr;
}

std::vector<float> AdapterStack::down(const std::string& weight) const {
  const Target& target = this->target(weight);
  const AdapterUpdate& update = target.update;
  const uint64_t columns = update.down.columns();
  std::vector<float> all(update.down.elements());
  const Values values = read_values(target, false);
  for (size_t p = 0; p < target.parts.size(); ++p) {
    for (size_t a = 0; a < opened_.size(); ++a) {
      const PartUpdate& from = target.parts[p].updates[a];
      if (!from.update) continue;
      const LowRankFactor& down = from.down();
      const std::vector<float>& numbers = values.at(down.tensor);
      const uint64_t first = p * update.count + adapters_[a].first - update.first;
      for (uint32_t i = 0; i < from.update->rank; ++i)
        for (uint64_t column = 0; column < columns; ++column)
          all[(first + i) * columns + column] = numbers[down.index(from.expert, i, column)];
    }
  }
  return all;
}

std::vector<float> AdapterStack::up(const std::string& weight) const {
  const Target& target = this->target(weight);
  const AdapterUpdate& update = target.update;
  const uint64_t columns = update.up.columns();
  std::vector<float> all(update.up.elements());
  const Values values = read_values(target, true);
  for (size_t a = 0; a < opened_.size(); ++a) {
    for (uint64_t row = 0; row < update.up.rows(); ++row) {
      const Row* of = row_of(target, a, row);
      if (!of) continue;
      const PartUpdate& from = target.parts[of->part].updates[a];
      const LowRankFactor& up = from.up();
      const std::vector<float>& numbers = values.at(up.tensor);
      const uint64_t column =
          of->part % target.of_expert * update.count + adapters_[a].first - update.first;
      for (uint32_t i = 0; i < from.update->rank; ++i) {
        const double value = numbers[up.index(from.expert, i, of->in_file)] * from.update->factor;
        all[row * columns + column + i] = static_cast<float>(value);
      }
    }
  }
  return all;
}

AdapterStack::Sum::Sum(const AdapterStack& stack, const std::string& weight)
    : stack_(stack),
      target_(stack.target(weight)),
      down_(stack.read_values(target_, false)),
      up_(stack.read_values(target_, true)) {}

void AdapterStack::Sum::add_to(uint64_t row, uint64_t first, std::span<double> values) const {
  for (size_t a = 0; a < stack_.opened_.size(); ++a) {
    const Row* of = stack_.row_of(target_, a, row);
    if (!of) continue;
    const PartUpdate& from = target_.parts[of->part].updates[a];
    const LowRankFactor &down = from.down(), &up = from.up();
    const std::vector<float>&downs = down_.at(down.tensor), &ups = up_.at(up.tensor);
    for (uint32_t i = 0; i < from.update->rank; ++i) {
      const double factor = ups[up.index(from.expert, i, of->in_file)] *
                            (from.update->factor * stack_.adapters_[a].scale);
      const float* numbers = downs.data() + down.index(from.expert, i, first);
      for (size_t column = 0; column < values.size(); ++column)
        values[column] += factor * numbers[column * down.of_width];
    }
  }
}

}  // namespace mulciber
