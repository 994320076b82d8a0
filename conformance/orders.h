// Cases with their workgroups and subgroups numbered in other orders (runtime/spirv_order.h): the
// results must have the bits that they have in the device's own. What needs a barrier and has none,
// or has two workgroups write one place, gives others.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.h"
#include "runtime/pipeline.h"
#include "runtime/tensor.h"

namespace mulciber::conformance {

/// Which cases run in other orders, and in which.
enum class Shake : uint8_t {
  kNone,
  kSome,  // every fifth case of a row, in reverse and at random by turns
  kAll,   // every case, in reverse and twice at random
};
/// "none", "some", "all", and the other way round; nothing for another word.
const char* name_of(Shake shake);
std::optional<Shake> shake_from(std::string_view word);

/// The other orders that a case runs in. place: SuiteCase::place.
std::vector<Order> orders_of(Shake shake, size_t place, uint64_t seed);

/// Programs that are recorded while it lives have this order.
class OrderScope {
 public:
  OrderScope(Device& device, const Order& order) : pipelines_(device.pipelines()) {
    pipelines_.set_order(order);
  }
  ~OrderScope() { pipelines_.set_order({}); }
  OrderScope(const OrderScope&) = delete;

 private:
  PipelineCache& pipelines_;
};

/// The first element in which two results of one case differ, with both values: "in reverse order
/// element 5 of output 0 is 2, in the device's own 1"; "" where all bits are equal. Bytes: one
/// array per output, which `outputs` describe.
std::string order_difference(const std::vector<Tensor>& outputs, const Order& order,
                             const std::vector<std::vector<std::byte>>& reordered,
                             const std::vector<std::vector<std::byte>>& own);

}  // namespace mulciber::conformance
