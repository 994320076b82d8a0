#include "models/adapters/weights_load.h"

#include <utility>

#include "models/adapters/adapter_merge.h"
#include "models/families/registry.h"

namespace mulciber {
namespace {

class MergingLoad : public WeightsLoad {
 public:
  MergingLoad(Device& device, WeightTable wanted, const Checkpoint& checkpoint,
              const std::string& family, const ModelOptions& options)
      : table_(table_to_read(std::move(wanted), options)),
        checkpoint_(checkpoint),
        sink_(device),
        adapters_(merged_adapters(table_, checkpoint, options)),
        merge_(adapters_.get(), sink_),
        reader_(table_, checkpoint, family, options.matrices, merge_) {}

  bool step(uint64_t bytes) override {
    if (weights_) return false;
    if (reader_.step(bytes)) return true;
    weights_ = sink_.finish(table_, checkpoint_);
    return false;
  }
  uint64_t done() const override { return reader_.done(); }
  uint64_t total() const override { return reader_.total(); }
  Weights take() override { return *std::move(weights_); }

 private:
  WeightTable table_;
  const Checkpoint& checkpoint_;
  DeviceWeightSink sink_;
  std::shared_ptr<const AdapterStack> adapters_;
  AdapterMerge merge_;
  WeightReader reader_;
  std::optional<Weights> weights_;  // set once all are on the device
};

}  // namespace

std::shared_ptr<const AdapterStack> merged_adapters(const WeightTable& table,
                                                    const Checkpoint& checkpoint,
                                                    const ModelOptions& options) {
  if (!options.merge_adapters || options.adapters.empty()) return nullptr;
  std::vector<AdapterTable> others;
  if (const ModelFamily* family = find_family(checkpoint); family && family->decoder)
    others = other_adapter_tables(read_decoder_config(checkpoint, *family->decoder));
  return std::make_shared<const AdapterStack>(table, options.adapters, checkpoint,
                                              AdapterStack::Options{.others = others});
}

std::unique_ptr<WeightsLoad> start_weights(Device& device, WeightTable table,
                                           const Checkpoint& checkpoint, const std::string& family,
                                           const ModelOptions& options) {
  return std::make_unique<MergingLoad>(device, std::move(table), checkpoint, family, options);
}

Weights weights_of(Device& device, const WeightTable& table, const Checkpoint& checkpoint,
                   const std::string& family, const ModelOptions& options) {
  if (options.weights) return options.weights->take();
  const WeightTable wanted = table_to_read(table, options);
  const auto merged = merged_adapters(table, checkpoint, options);
  DeviceWeightSink sink(device);
  AdapterMerge merge(merged.get(), sink);
  read_weights(wanted, checkpoint, family, options.matrices, merge, options.on_progress);
  return sink.finish(wanted, checkpoint);
}

}  // namespace mulciber
