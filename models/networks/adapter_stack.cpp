#include "models/networks/adapter_stack.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "checkpoints/json.h"
#include "models/families/gguf_metadata.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Products take eight halves at a time.
constexpr uint32_t kScaleStep = 8;

/// Whether A and B times the factor are numbers of 16 bits as they come.
bool is_half(const LowRankUpdate& update) {
  int exponent = 0;
  const bool power_of_two = std::abs(std::frexp(update.factor, &exponent)) == 0.5;
  return update.down->type == CheckpointType::kF16 && update.up->type == CheckpointType::kF16 &&
         power_of_two;
}

std::string where(const OpenAdapter& adapter, const CheckpointTensor& tensor) {
  return fmt::format("{}, tensor `{}`", adapter.files->where(), printable(tensor.name));
}

void check_shape(const OpenAdapter& adapter, const LowRankUpdate& update, uint64_t rows,
                 uint64_t columns) {
  const auto check = [&](const CheckpointTensor& tensor, uint64_t found, uint64_t wanted) {
    if (found != wanted)
      throw ModelError(where(adapter, tensor),
                       fmt::format("has shape {}, and `{}` of the model is a matrix of {} by {}",
                                   tensor.shape_text(), printable(update.weight), rows, columns),
                       "it was made for another model: take the one that its page names");
  };
  check(*update.down, update.down->shape[1], columns);
  check(*update.up, update.up->shape[0], rows);
}

/// As files hold it: the matrix that `source` is, or is a part of.
uint64_t rows_in_file(const WeightSource& source) {
  return source.rows_in_file > 0 ? source.rows_in_file : source.shape.rows();
}

}  // namespace

AdapterStack::AdapterStack(const WeightTable& table, std::vector<OpenAdapter> adapters,
                           const Checkpoint& checkpoint, const Options& options)
    : opened_(std::move(adapters)) {
  check_formats(checkpoint, options.other);
  uint32_t first = 0;
  for (const OpenAdapter& adapter : opened_) {
    const uint32_t count = (adapter.files->rank() + kScaleStep - 1) / kScaleStep * kScaleStep;
    adapters_.push_back({adapter.name, first, count, adapter.scale});
    first += count;
    found_.emplace_back(adapter.files->updates().size());
  }
  const bool others = std::ranges::count(is_other_, true) > 0;
  for (const WeightSpec& spec : table) {
    Layout own = find_layout(spec, false, options.takes);
    Target target = {
        .shape = spec.shape, .parts = std::move(own.parts), .rows = std::move(own.rows)};
    if (spec.role == WeightRole::kExperts) target.of_expert = spec.in_turns;
    const WeightSpec* other = others ? options.other->find(spec.name) : nullptr;
    if (other && other->shape == spec.shape) {
      Layout layout = find_layout(*other, true, options.takes);
      const auto rotated = options.other->rotated.find(spec.name);
      if (rotated != options.other->rotated.end())
        for (uint64_t row = 0; row < std::min(rotated->second.rows, layout.rows.size()); ++row)
          layout.rows[row].in_file = rotated->second.in_adapter(layout.rows[row].in_file);
      join(target, std::move(layout));
    }
    if (target.parts.empty()) continue;
    place(target, options.half);
    targets_.emplace(spec.name, std::move(target));
  }
  check_found(options.other);
}

void AdapterStack::check_formats(const Checkpoint& checkpoint, const AdapterTable* other) {
  const std::string own = checkpoint.gguf() ? gguf_architecture(*checkpoint.gguf()) : std::string();
  for (const OpenAdapter& adapter : opened_) {
    const std::string& made_for = adapter.files->architecture();
    is_other_.push_back(made_for.empty() != own.empty());
    if (is_other_.back() && !other)
      throw ModelError(
          adapter.files->where(),
          fmt::format("is {}, and what this model's matrices are called there is not known",
                      made_for.empty() ? "PEFT's" : "a GGUF file"),
          fmt::format("take an adapter {}",
                      made_for.empty() ? "of llama.cpp's convert_lora_to_gguf.py" : "of PEFT's"));
    const std::string& expected = is_other_.back() ? other->architecture : own;
    if (made_for != expected)
      throw ModelError(adapter.files->where(),
                       fmt::format("was made for the architecture {}, the model's is {}",
                                   printable(made_for), printable(expected)),
                       "take the model that its page names");
  }
}

void AdapterStack::check_found(const AdapterTable* other) const {
  for (size_t a = 0; a < opened_.size(); ++a) {
    const auto missing = std::ranges::find(found_[a], false);
    if (missing == found_[a].end()) continue;
    const LowRankUpdate& update =
        opened_[a].files->updates()[static_cast<size_t>(missing - found_[a].begin())];
    const auto is_it = [&](const WeightSource& source) {
      return std::ranges::count(source.names, update.weight) > 0;
    };
    const bool known = is_other_[a] && std::ranges::any_of(other->table, [&](const auto& spec) {
                         return std::ranges::any_of(spec.sources, is_it);
                       });
    const std::string weight = printable(update.weight);
    if (known)
      throw ModelError(where(opened_[a], *update.down),
                       fmt::format("changes `{}`, which the model's file does not hold as a matrix "
                                   "of its own",
                                   weight),
                       "take the model in the adapter's format");
    throw ModelError(
        where(opened_[a], *update.down),
        fmt::format("changes `{}`, and the model has no such matrix of a product", weight),
        "it was made for another model: take the one that its page names");
  }
}

AdapterStack::Layout AdapterStack::find_layout(const WeightSpec& spec, bool other, Takes takes) {
  const bool experts = spec.role == WeightRole::kExperts;
  if (!experts && (spec.role != WeightRole::kMatrix || spec.shape.rank() != 2)) return {};
  Layout layout;
  std::map<std::string, uint32_t> parts;  // by the name of the weight in files
  std::vector<uint32_t> part_of;          // each source
  for (const WeightSource& source : spec.sources) {
    uint32_t part = kNoPart;
    if (experts && source.shape.rank() != 2) return {};  // a tensor of all experts
    for (size_t a = 0; a < opened_.size(); ++a) {
      if (is_other_[a] != other) continue;
      const std::vector<LowRankUpdate>& updates = opened_[a].files->updates();
      for (const std::string& name : source.names) {
        const auto update = std::ranges::lower_bound(updates, name, {}, &LowRankUpdate::weight);
        if (update == updates.end() || update->weight != name) continue;
        check_shape(opened_[a], *update, rows_in_file(source), source.shape.columns());
        if (takes && !takes(spec.name))
          throw ModelError(where(opened_[a], *update->down),
                           fmt::format("changes `{}`, beside which adapters cannot stand",
                                       printable(update->weight)),
                           "have it merged into the weights");
        const Part empty = {std::vector<const LowRankUpdate*>(opened_.size())};
        if (experts) {
          // Each has its parts, whether they are adapted or not.
          layout.parts.resize(spec.sources.size(), empty);
          part = static_cast<uint32_t>(part_of.size());
        } else {
          // Sources are told apart by their first name: files have one of them.
          const auto [known, is_new] =
              parts.emplace(source.names.front(), static_cast<uint32_t>(layout.parts.size()));
          if (is_new) layout.parts.push_back(empty);
          part = known->second;
        }
        layout.parts[part].updates[a] = &*update;
        found_[a][static_cast<size_t>(update - updates.begin())] = true;
        break;
      }
    }
    part_of.push_back(part);
  }
  if (layout.parts.empty()) return {};
  for (size_t group = 0; group < spec.sources.size(); group += spec.in_turns) {
    const uint64_t rows = spec.sources[group].shape.rows();
    for (uint64_t row = 0; row < rows; ++row)
      for (size_t i = group; i < group + spec.in_turns; ++i)
        layout.rows.push_back({part_of[i], spec.sources[i].first_row + row});
  }
  return layout;
}

void AdapterStack::join(Target& target, Layout other) {
  if (target.parts.empty()) {
    target.parts = std::move(other.parts);
    target.other_rows = std::move(other.rows);
    return;
  }
  // For each part the one of the target's that has the same rows.
  std::vector<uint32_t> same(other.parts.size(), kNoPart);
  for (uint32_t theirs = 0; theirs < other.parts.size(); ++theirs) {
    Part& part = other.parts[theirs];
    for (uint32_t ours = 0; ours < target.parts.size() && same[theirs] == kNoPart; ++ours) {
      const bool equal = std::ranges::equal(
          target.rows, other.rows,
          [&](const Row& a, const Row& b) { return (a.part == ours) == (b.part == theirs); });
      if (!equal) continue;
      same[theirs] = ours;
      for (size_t a = 0; a < part.updates.size(); ++a)
        if (part.updates[a]) target.parts[ours].updates[a] = part.updates[a];
    }
    if (same[theirs] != kNoPart) continue;
    same[theirs] = static_cast<uint32_t>(target.parts.size());
    target.parts.push_back(std::move(part));
  }
  for (Row& row : other.rows)
    if (row.part != kNoPart) row.part = same[row.part];
  target.other_rows = std::move(other.rows);
}

void AdapterStack::place(Target& target, bool half) const {
  uint32_t begin = UINT32_MAX, end = 0;
  bool narrow = true;
  for (const Part& part : target.parts) {
    for (size_t a = 0; a < opened_.size(); ++a) {
      const LowRankUpdate* update = part.updates[a];
      if (!update) continue;
      begin = std::min(begin, adapters_[a].first);
      end = std::max(end, adapters_[a].first + adapters_[a].count);
      narrow = narrow && (half || is_half(*update));
    }
  }
  const uint64_t parts = target.of_expert > 0 ? target.of_expert : target.parts.size(),
                 all = uint64_t{end - begin} * parts, columns = target.shape.columns();
  target.update = {.down = {all, columns},
                   .up = {target.shape.rows(), all},
                   .type = narrow ? DataType::kF16 : DataType::kF32,
                   .first = begin,
                   .count = end - begin};
  if (target.of_expert == 0) return;
  const uint64_t experts = target.shape[0];
  target.update.down = {experts, all, columns};
  target.update.up = {experts, target.shape[1], all};
}

AdapterStack::Updates AdapterStack::updates() const {
  Updates all;
  for (const auto& [weight, target] : targets_) all.emplace(weight, target.update);
  return all;
}

std::optional<AdapterStack::Update> AdapterStack::find(const std::string& weight) const {
  const auto found = targets_.find(weight);
  return found == targets_.end() ? std::nullopt : std::optional(found->second.update);
}

uint64_t AdapterStack::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [weight, target] : targets_) {
    const Update& update = target.update;
    for (const Shape& shape : {update.down, update.up})
      bytes += aligned_weight_bytes(shape.elements() * size_of(update.type));
  }
  return bytes;
}

std::vector<float> AdapterStack::down(const std::string& weight) const {
  const Target& target = this->target(weight);
  const Update& update = target.update;
  const uint64_t columns = update.down.columns();
  std::vector<float> all(update.down.elements());
  for (size_t p = 0; p < target.parts.size(); ++p) {
    for (size_t a = 0; a < opened_.size(); ++a) {
      const LowRankUpdate* from = target.parts[p].updates[a];
      if (!from) continue;
      const std::vector<float> values = opened_[a].files->values(*from->down);
      const uint64_t row = p * update.count + adapters_[a].first - update.first;
      std::ranges::copy(values, all.begin() + static_cast<std::ptrdiff_t>(row * columns));
    }
  }
  return all;
}

std::vector<float> AdapterStack::up(const std::string& weight) const {
  const Target& target = this->target(weight);
  const Update& update = target.update;
  const uint64_t columns = update.up.columns();
  std::vector<float> all(update.up.elements());
  const uint64_t beside = target.of_expert > 0 ? target.of_expert : target.parts.size();
  for (size_t a = 0; a < opened_.size(); ++a) {
    std::vector<std::vector<float>> values;  // of each part
    for (const Part& part : target.parts)
      values.push_back(part.updates[a] ? opened_[a].files->values(*part.updates[a]->up)
                                       : std::vector<float>());
    const std::vector<Row>& rows = this->rows(target, a);
    for (size_t row = 0; row < rows.size(); ++row) {
      const Row& of = rows[row];
      if (of.part == kNoPart) continue;
      const LowRankUpdate* from = target.parts[of.part].updates[a];
      if (!from) continue;
      const uint64_t column = of.part % beside * update.count + adapters_[a].first - update.first;
      for (uint32_t i = 0; i < from->rank; ++i) {
        const double value = values[of.part][of.in_file * from->rank + i] * from->factor;
        all[row * columns + column + i] = static_cast<float>(value);
      }
    }
  }
  return all;
}

AdapterStack::Sum::Sum(const AdapterStack& stack, const std::string& weight)
    : target_(stack.target(weight)) {
  for (const Part& part : target_.parts) {
    std::vector<Product>& products = parts_.emplace_back();
    for (size_t a = 0; a < stack.opened_.size(); ++a) {
      const LowRankUpdate* from = part.updates[a];
      if (!from) continue;
      const LowRankAdapter& files = *stack.opened_[a].files;
      products.push_back({stack.is_other_[a], from->rank, from->factor * stack.adapters_[a].scale,
                          files.values(*from->down), files.values(*from->up)});
    }
  }
}

void AdapterStack::Sum::add_to(uint64_t row, uint64_t first, std::span<double> values) const {
  for (const bool other : {false, true}) {
    const std::vector<Row>& rows = other ? target_.other_rows : target_.rows;
    if (rows.empty() || rows[row].part == kNoPart) continue;
    const Row& from = rows[row];
    for (const Product& product : parts_[from.part]) {
      if (product.other != other) continue;
      for (uint32_t i = 0; i < product.rank; ++i) {
        const double factor = product.up[from.in_file * product.rank + i] * product.factor;
        const float* down = product.down.data() + i * columns() + first;
        for (size_t column = 0; column < values.size(); ++column)
          values[column] += factor * down[column];
      }
    }
  }
}

}  // namespace mulciber
