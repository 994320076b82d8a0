// Adapters against a model's table of weights: what they add to which weight, and how those of all
// of them stand beside one another.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/weights.h"
#include "models/adapters/adapter_table.h"
#include "models/adapters/low_rank_adapter.h"
#include "models/core/model_options.h"
#include "models/networks/decoder_network.h"

namespace mulciber {

/// A tensor of an adapter, for messages.
std::string where_in(const OpenAdapter& adapter, const CheckpointTensor& tensor);

/// Every adapter has as many scales of a row as its largest rank, rounded up so that products run
/// along whole vectors: scale s is that of number s of each of its A's.
class AdapterStack {
 public:
  /// Whether a weight of the table can be adapted; null: any matrix can.
  using Takes = bool (*)(const std::string& weight);
  struct Options {
    /// A and B are kept in f16, as those are that files hold in it, where factors change no bits.
    bool half = false;
    Takes takes = nullptr;
    /// The same weights for adapters that call them otherwise than the checkpoint does.
    std::span<const AdapterTable> others = {};
    /// Weights that only these have are changed as well: the network has their adapters stand
    /// beside the form that the checkpoint holds.
    bool other_forms = false;
  };
  /// Throws ModelError, naming file and tensor, for what the table has not, or in another shape.
  AdapterStack(const WeightTable& table, std::vector<OpenAdapter> adapters,
               const Checkpoint& checkpoint, const Options& options);

  /// What a network has of them beside its weights.
  NetworkAdapters beside() const;
  bool changes(const std::string& weight) const { return targets_.count(weight) > 0; }

  /// Bytes of all of them on the device, as weight_bytes().
  uint64_t bytes() const;
  /// Throws ModelError where a value is NaN or infinite.
  std::vector<float> down(const std::string& weight) const;
  std::vector<float> up(const std::string& weight) const;

  /// What all adapters with their own scales add to rows of a weight.
  class Sum;

 private:
  /// What an adapter adds to a part.
  struct PartUpdate {
    const LowRankUpdate* update = nullptr;  // null: nothing
    uint64_t expert = 0;                    // of the update's
    bool turned = false;                    // LowRankAdapter::turned()

    const LowRankFactor& down() const { return turned ? update->up : update->down; }
    const LowRankFactor& up() const { return turned ? update->down : update->up; }
  };
  /// A matrix of the file that a weight, or a part of its rows, comes from.
  struct Part {
    std::vector<PartUpdate> updates;  // by adapter
  };
  struct Row {
    uint32_t part = 0;
    uint64_t in_file = 0;
  };
  /// How files that call weights alike make one of them.
  struct Layout {
    std::vector<Part> parts;  // of experts one expert's after another's, of each as many
    uint32_t of_expert = 0;   // those; of what is no experts all
    std::vector<Row> rows;    // those of no part have the number kNoPart; empty: there are no parts
  };
  struct Target {
    Shape shape;
    uint64_t experts = 1;
    std::vector<Part> parts;
    uint32_t of_expert = 0;
    std::vector<std::vector<Row>> rows;  // by table; empty: none of its adapters changes the weight
    AdapterUpdate update;
  };
  static constexpr uint32_t kNoPart = UINT32_MAX;

  /// Numbers of A's or B's, as files have them.
  using Values = std::map<const CheckpointTensor*, std::vector<float>>;

  void find_tables(const Checkpoint& checkpoint, std::span<const AdapterTable> others);
  /// own: the checkpoint's; others have it too.
  void add_target(const WeightSpec& spec, bool own, const Options& options);
  /// What the adapter adds to a source of a weight, which has so many experts; in `expert` 0.
  PartUpdate find_update(const WeightSource& source, uint64_t experts, size_t adapter);
  /// spec: of that table.
  Layout find_layout(const WeightSpec& spec, size_t table, Takes takes);
  /// Adds the parts of a table; those of the same rows as a part that is there are that part.
  static void join(Target& target, Layout layout, size_t table);
  void check_found(std::span<const AdapterTable> others) const;
  void place(Target& target, bool half) const;
  const Target& target(const std::string& weight) const { return targets_.at(weight); }
  Values read_values(const Target& target, bool up) const;
  /// The row of an adapter's that a row of the weight gets; null: it gets none.
  const Row* row_of(const Target& target, size_t adapter, uint64_t row) const;

  std::vector<OpenAdapter> opened_;
  /// By adapter: 0: it calls weights as the checkpoint does; from 1 on those of Options::others.
  std::vector<size_t> table_of_;
  std::vector<std::vector<bool>> found_;  // by adapter: updates whose weight the table has
  std::vector<NetworkAdapter> adapters_;
  std::map<std::string, Target> targets_;
};

class AdapterStack::Sum {
 public:
  Sum(const AdapterStack& stack, const std::string& weight);
  /// Columns of the weight.
  uint64_t columns() const { return target_.shape.columns(); }
  /// Adds row `row` from column `first` on to `values`.
  void add_to(uint64_t row, uint64_t first, std::span<double> values) const;

 private:
  const AdapterStack& stack_;
  const Target& target_;
  Values down_, up_;
};

}  // namespace mulciber
