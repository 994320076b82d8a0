// Finds the parts of a weight that adapters change, and which rows of files make up its rows.
#include <algorithm>

#include <fmt/format.h>

#include "checkpoints/json.h"
#include "models/adapters/adapter_stack.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

/// Rows of the file's matrix (of one expert) that `source` is, or is a part of.
uint64_t rows_in_file(const WeightSource& source, uint64_t experts) {
  return source.rows_in_file > 0 ? source.rows_in_file : source.shape.rows() / experts;
}

}  // namespace

std::string where_in(const OpenAdapter& adapter, const CheckpointTensor& tensor) {
  return fmt::format("{}, tensor `{}`", adapter.files->where(), printable(tensor.name));
}

AdapterStack::PartUpdate AdapterStack::find_update(const WeightSource& source, uint64_t experts,
                                                   size_t adapter) {
  const LowRankAdapter& files = *opened_[adapter].files;
  for (const std::string& name : source.names) {
    const auto found = std::ranges::lower_bound(files.updates(), name, {}, &LowRankUpdate::weight);
    if (found == files.updates().end() || found->weight != name) continue;
    const uint64_t rows = rows_in_file(source, experts), columns = source.shape.columns();
    PartUpdate part = {.update = &*found};
    if (found->parameter && experts > 1) {
      const bool given = part.down().width == columns && part.up().width == rows,
                 turned = part.down().width == rows && part.up().width == columns;
      part.turned = turned && (!given || files.turned(source.form == SourceForm::kTransposed));
    }
    const bool down_fits = part.down().width == columns && found->experts == experts;
    if (!down_fits || part.up().width != rows) {
      const CheckpointTensor& wrong = *(down_fits ? part.up() : part.down()).tensor;
      throw ModelError(where_in(opened_[adapter], wrong),
                       fmt::format("has shape {}, and `{}` of the model is {} of {} by {}",
                                   wrong.shape_text(), printable(name),
                                   experts > 1 ? fmt::format("{} matrices", experts) : "a matrix",
                                   rows, columns),
                       "it was made for another model: take the one that its page names");
    }
    found_[adapter][static_cast<size_t>(found - files.updates().begin())] = true;
    return part;
  }
  return {};
}

AdapterStack::Layout AdapterStack::find_layout(const WeightSpec& spec, size_t table, Takes takes) {
  const bool experts = spec.role == WeightRole::kExperts;
  if (!experts && (spec.role != WeightRole::kMatrix || spec.shape.rank() != 2)) return {};
  // Experts share a tensor, or have one each. In the second case each has all of its parts, adapted
  // or not.
  const bool stacked = experts && spec.sources.front().shape.rank() == 3;
  const uint64_t repeated = stacked ? spec.shape[0] : 1;
  Layout layout;
  std::vector<Part> parts;                // parts of one repetition of the sources
  std::map<std::string, uint32_t> known;  // part by name of the weight in files
  std::vector<uint32_t> part_of;          // part of each source
  bool changes = false;
  for (const WeightSource& source : spec.sources) {
    Part part = {std::vector<PartUpdate>(opened_.size())};
    bool adapted = false;
    for (size_t a = 0; a < opened_.size(); ++a) {
      if (table_of_[a] != table) continue;
      part.updates[a] = find_update(source, repeated, a);
      if (!part.updates[a].update) continue;
      adapted = true;
      if (takes && !takes(spec.name))
        throw ModelError(where_in(opened_[a], *part.updates[a].update->down.tensor),
                         fmt::format("changes `{}`, beside which adapters cannot stand",
                                     printable(part.updates[a].update->weight)),
                         "have it merged into the weights");
    }
    changes = changes || adapted;
    uint32_t number = kNoPart;
    if (adapted || (experts && !stacked)) {
      // The first name identifies a source: files have only one of its names.
      const auto [place, is_new] =
          known.emplace(source.names.front(), static_cast<uint32_t>(parts.size()));
      if (is_new) parts.push_back(std::move(part));
      number = place->second;
    }
    part_of.push_back(number);
  }
  if (!changes) return {};
  const auto count = static_cast<uint32_t>(parts.size());
  layout.of_expert = experts && !stacked ? spec.interleaved : count;
  for (uint64_t expert = 0; expert < repeated; ++expert) {
    for (Part part : parts) {
      for (PartUpdate& update : part.updates) update.expert = expert;
      layout.parts.push_back(std::move(part));
    }
    const auto before = static_cast<uint32_t>(expert * count);
    for (size_t group = 0; group < spec.sources.size(); group += spec.interleaved) {
      const Shape& shape = spec.sources[group].shape;
      const uint64_t rows = stacked ? shape[1] : shape.rows();
      for (uint64_t row = 0; row < rows; ++row)
        for (size_t i = group; i < group + spec.interleaved; ++i)
          layout.rows.push_back({part_of[i] == kNoPart ? kNoPart : before + part_of[i],
                                 spec.sources[i].first_row + row});
    }
  }
  return layout;
}

void AdapterStack::join(Target& target, Layout layout, size_t table) {
  // For each part of an expert, find the target's part with the same rows; all experts are alike.
  const uint64_t rows = layout.rows.size() / target.experts;
  std::vector<uint32_t> same(layout.of_expert, kNoPart);
  uint32_t together = target.of_expert;
  for (uint32_t theirs = 0; theirs < layout.of_expert; ++theirs) {
    for (uint32_t ours = 0; ours < target.of_expert && same[theirs] == kNoPart; ++ours)
      for (const std::vector<Row>& known : target.rows)
        if (!known.empty() &&
            std::equal(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(rows),
                       layout.rows.begin(), [&](const Row& a, const Row& b) {
                         return (a.part == ours) == (b.part == theirs);
                       }))
          same[theirs] = ours;
    if (same[theirs] == kNoPart) same[theirs] = together++;
  }
  // Every expert now has `together` parts.
  std::vector<Part> parts(target.experts * together,
                          {std::vector<PartUpdate>(layout.parts.front().updates.size())});
  const auto add = [&](std::vector<Part>& from, uint32_t of_expert, const auto& place) {
    for (uint32_t p = 0; p < from.size(); ++p) {
      Part& to = parts[p / of_expert * together + place(p % of_expert)];
      for (size_t a = 0; a < to.updates.size(); ++a)
        if (from[p].updates[a].update) to.updates[a] = from[p].updates[a];
    }
  };
  const auto renumber = [&](std::vector<Row>& all, uint32_t of_expert, const auto& place) {
    for (Row& row : all)
      if (row.part != kNoPart)
        row.part = row.part / of_expert * together + place(row.part % of_expert);
  };
  const auto stays = [](uint32_t part) { return part; };
  const auto moves = [&](uint32_t part) { return same[part]; };
  add(target.parts, target.of_expert, stays);
  add(layout.parts, layout.of_expert, moves);
  for (std::vector<Row>& known : target.rows) renumber(known, target.of_expert, stays);
  renumber(layout.rows, layout.of_expert, moves);
  target.parts = std::move(parts);
  target.of_expert = together;
  target.rows[table] = std::move(layout.rows);
}

}  // namespace mulciber
