// Merging adapters into weights during loading.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoints/weights.h"
#include "models/adapters/adapter_stack.h"

namespace mulciber {

/// Adds adapters' updates to weights, in double precision, and passes them to another sink.
class AdapterMerge : public WeightSink {
 public:
  /// adapters: null: weights pass unchanged. Both must outlive this object.
  AdapterMerge(const AdapterStack* adapters, WeightSink& to) : adapters_(adapters), to_(to) {}

  /// Throws ModelError when an adapter changes a quantized weight.
  void begin(const std::string& name, std::span<const WeightSegment> segments) override;
  void write(size_t segment, uint64_t offset, std::span<const std::byte> bytes) override;

 private:
  const AdapterStack* adapters_;
  WeightSink& to_;
  std::vector<WeightSegment> segments_;
  std::optional<AdapterStack::Sum> sum_;  // updates of the current weight
};

}  // namespace mulciber
