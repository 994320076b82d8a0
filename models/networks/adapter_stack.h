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
#include "models/low_rank_adapter.h"
#include "models/model_options.h"
#include "models/networks/adapter_table.h"
#include "models/networks/decoder_network.h"

namespace mulciber {

/// Names of the tensors that are added for a weight of the table.
inline std::string lora_down(const std::string& weight) { return weight + ".lora_down"; }
inline std::string lora_up(const std::string& weight) { return weight + ".lora_up"; }

/// Every adapter has as many scales of a row as its largest rank, rounded up so that products run
/// along whole vectors: scale s is that of number s of each of its A's.
class AdapterStack {
 public:
  /// Of one weight, as LowRank (layers/linear.h) says.
  struct Update {
    Shape down, up;
    DataType type = DataType::kF32;
    uint32_t first = 0, count = 0;
  };

  /// Whether a weight of the table can be adapted; null: any matrix can.
  using Takes = bool (*)(const std::string& weight);
  struct Options {
    /// A and B are kept in f16, as those are that files hold in it, where factors change no bits.
    bool half = false;
    Takes takes = nullptr;
    /// The same weights for adapters of the other format than the checkpoint's; null: there are
    /// none.
    const AdapterTable* other = nullptr;
  };
  /// Throws ModelError, naming file and tensor, for what the table has not, or in another shape.
  AdapterStack(const WeightTable& table, std::vector<OpenAdapter> adapters,
               const Checkpoint& checkpoint, const Options& options);

  const std::vector<NetworkAdapter>& adapters() const { return adapters_; }
  /// By weight.
  using Updates = std::map<std::string, Update>;
  Updates updates() const;
  std::optional<Update> find(const std::string& weight) const;

  /// Bytes of all of them on the device, as weight_bytes().
  uint64_t bytes() const;
  /// Throws ModelError where a value is NaN or infinite.
  std::vector<float> down(const std::string& weight) const;
  std::vector<float> up(const std::string& weight) const;

  /// What all adapters with their own scales add to rows of a weight.
  class Sum;

 private:
  /// A matrix of the file that a weight, or a part of its rows, comes from.
  struct Part {
    std::vector<const LowRankUpdate*> updates;  // by adapter; null: none
  };
  struct Row {
    uint32_t part = 0;
    uint64_t in_file = 0;
  };
  /// How files of one format make up a weight.
  struct Layout {
    std::vector<Part> parts;
    std::vector<Row> rows;  // those of no part have the number kNoPart; empty: there are no parts
  };
  struct Target {
    Shape shape;
    std::vector<Part> parts;
    std::vector<Row> rows, other_rows;  // for adapters of the checkpoint's format, of the other one
    /// Parts of one expert, of which there are as many of each; 0: these are no experts.
    uint32_t of_expert = 0;
    Update update;
  };
  static constexpr uint32_t kNoPart = UINT32_MAX;

  void check_formats(const Checkpoint& checkpoint, const AdapterTable* other);
  /// other: for adapters of the other format.
  Layout find_layout(const WeightSpec& spec, bool other, Takes takes);
  /// Adds the parts of the other format; where they are made of the same rows they are the same.
  static void join(Target& target, Layout other);
  void check_found(const AdapterTable* other) const;
  void place(Target& target, bool half) const;
  const Target& target(const std::string& weight) const { return targets_.at(weight); }
  const std::vector<Row>& rows(const Target& target, size_t adapter) const {
    return is_other_[adapter] ? target.other_rows : target.rows;
  }

  std::vector<OpenAdapter> opened_;
  std::vector<bool> is_other_;            // by adapter: its format is not the checkpoint's
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
  struct Product {
    bool other = false;  // the adapter's rows are Target::other_rows
    uint32_t rank = 0;
    double factor = 0;            // with the adapter's scale
    std::vector<float> down, up;  // as files have them
  };
  const Target& target_;
  std::vector<std::vector<Product>> parts_;
};

}  // namespace mulciber
