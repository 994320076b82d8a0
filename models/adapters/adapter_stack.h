// Adapters matched with a model's weight table: which weights they update, and how the matrices of
// several adapters are concatenated.
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

/// Names a tensor of an adapter, for messages.
std::string where_in(const OpenAdapter& adapter, const CheckpointTensor& tensor);

/// The adapters of a model. Each has as many scales in a row as its largest rank, rounded up so
/// that products read whole vectors. Scale s belongs to row s of each of its matrices A.
class AdapterStack {
 public:
  /// Whether a weight of the table can be adapted; null: any matrix can.
  using Takes = bool (*)(const std::string& weight);
  struct Options {
    /// Keep all A and B in f16. Otherwise only those are f16 that files hold in f16 and whose
    /// factors change no bits.
    bool half = false;
    Takes takes = nullptr;
    /// Tables of the weights for adapters whose names differ from the checkpoint's.
    std::span<const AdapterTable> others = {};
    /// Also update weights that only `others` have: the network applies their adapters beside the
    /// weight that the checkpoint has instead.
    bool other_forms = false;
  };
  /// Throws ModelError, naming file and tensor, when an adapter's weight is not in the table or has
  /// another shape.
  AdapterStack(const WeightTable& table, std::vector<OpenAdapter> adapters,
               const Checkpoint& checkpoint, const Options& options);

  /// Description of the adapters for a network that applies them beside its weights.
  NetworkAdapters beside() const;
  bool changes(const std::string& weight) const { return targets_.count(weight) > 0; }

  /// Bytes of all adapters on the device, aligned as weight_bytes().
  uint64_t bytes() const;
  /// All adapters' matrices A and B of a weight, concatenated. Throw ModelError for NaN or
  /// infinity.
  std::vector<float> down(const std::string& weight) const;
  std::vector<float> up(const std::string& weight) const;

  /// Sum of all adapters' updates to rows of a weight, with the adapters' default scales.
  class Sum;

 private:
  /// An adapter's update of a part.
  struct PartUpdate {
    const LowRankUpdate* update = nullptr;  // null: no update
    uint64_t expert = 0;                    // expert of the update
    bool turned = false;                    // LowRankAdapter::turned()

    const LowRankFactor& down() const { return turned ? update->up : update->down; }
    const LowRankFactor& up() const { return turned ? update->down : update->up; }
  };
  /// A matrix in files that a weight, or some of its rows, come from.
  struct Part {
    std::vector<PartUpdate> updates;  // one for each adapter
  };
  struct Row {
    uint32_t part = 0;
    uint64_t in_file = 0;
  };
  /// How files with one set of names make up a weight.
  struct Layout {
    std::vector<Part> parts;  // expert by expert, equally many for each
    uint32_t of_expert = 0;   // parts of one expert; all parts if there are no experts
    std::vector<Row> rows;    // part is kNoPart for unchanged rows; empty: no parts
  };
  struct Target {
    Shape shape;
    uint64_t experts = 1;
    std::vector<Part> parts;
    uint32_t of_expert = 0;
    std::vector<std::vector<Row>> rows;  // by table; empty: no adapter of that table changes it
    AdapterUpdate update;
  };
  static constexpr uint32_t kNoPart = UINT32_MAX;

  /// Values of matrices A or B, in the files' layout.
  using Values = std::map<const CheckpointTensor*, std::vector<float>>;

  void find_tables(const Checkpoint& checkpoint, std::span<const AdapterTable> others);
  /// own: the weight is in the checkpoint's table; it may be in others too.
  void add_target(const WeightSpec& spec, bool own, const Options& options);
  /// An adapter's update of a source of a weight. experts: experts of the source. Leaves `expert`
  /// 0.
  PartUpdate find_update(const WeightSource& source, uint64_t experts, size_t adapter);
  /// spec: entry of that table.
  Layout find_layout(const WeightSpec& spec, size_t table, Takes takes);
  /// Adds the parts of a table. A part whose rows equal those of an existing part is merged with
  /// it.
  static void join(Target& target, Layout layout, size_t table);
  void check_found(std::span<const AdapterTable> others) const;
  void place(Target& target, bool half) const;
  const Target& target(const std::string& weight) const { return targets_.at(weight); }
  Values read_values(const Target& target, bool up) const;
  /// The row of an adapter's update for a row of the weight; null: the adapter does not change the
  /// row.
  const Row* row_of(const Target& target, size_t adapter, uint64_t row) const;

  std::vector<OpenAdapter> opened_;
  /// For each adapter, 0: its names are the checkpoint's; i + 1: its names are those of
  /// Options::others[i].
  std::vector<size_t> table_of_;
  std::vector<std::vector<bool>> found_;  // by adapter: whether each update's weight was found
  std::vector<NetworkAdapter> adapters_;
  std::map<std::string, Target> targets_;
};

class AdapterStack::Sum {
 public:
  Sum(const AdapterStack& stack, const std::string& weight);
  /// Columns of the weight.
  uint64_t columns() const { return target_.shape.columns(); }
  /// Adds to `values` the updates of row `row`, from column `first` on.
  void add_to(uint64_t row, uint64_t first, std::span<double> values) const;

 private:
  const AdapterStack& stack_;
  const Target& target_;
  Values down_, up_;
};

}  // namespace mulciber
