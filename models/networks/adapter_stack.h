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
  /// half: A and B are kept in f16, as those are that files hold in it, where factors change no
  /// bits. Throws ModelError, naming file and tensor, for what the table has not, or in another
  /// shape.
  AdapterStack(const WeightTable& table, std::vector<OpenAdapter> adapters,
               const Checkpoint& checkpoint, bool half, Takes takes = nullptr);

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
  struct Target {
    Shape shape;
    std::vector<Part> parts;
    std::vector<Row> rows;  // those of no part have the number kNoPart
    Update update;
  };
  static constexpr uint32_t kNoPart = UINT32_MAX;

  void find_target(const WeightSpec& spec, Takes takes, std::vector<std::vector<bool>>& found);
  void place(Target& target, bool half) const;
  const Target& target(const std::string& weight) const { return targets_.at(weight); }

  std::vector<OpenAdapter> opened_;
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
    uint32_t rank = 0;
    double factor = 0;            // with the adapter's scale
    std::vector<float> down, up;  // as files have them
  };
  const Target& target_;
  std::vector<std::vector<Product>> parts_;
};

}  // namespace mulciber
