// Adapters that become part of the weights, on the way to the device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoints/weights.h"
#include "models/adapters/adapter_stack.h"

namespace mulciber {

/// Hands weights on with what adapters add to them, summed up in double precision.
class AdapterMerge : public WeightSink {
 public:
  /// adapters: null: weights go as they come. Both must outlive it.
  AdapterMerge(const AdapterStack* adapters, WeightSink& to) : adapters_(adapters), to_(to) {}

  /// Throws ModelError for a weight in blocks that is to be changed.
  void begin(const std::string& name, std::span<const WeightSegment> segments) override;
  void write(size_t segment, uint64_t offset, std::span<const std::byte> bytes) override;

 private:
  const AdapterStack* adapters_;
  WeightSink& to_;
  std::vector<WeightSegment> segments_;
  std::optional<AdapterStack::Sum> sum_;  // of the weight that is under way
};

}  // namespace mulciber
