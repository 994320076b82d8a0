// Runs cases with their workgroups and subgroups numbered in other orders (runtime/spirv_order.h):
// the results must be bitwise those of the device's own order. A missing barrier, or two workgroups
// that write one place, gives other results.
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

/// The cases that run in other orders, and the orders.
enum class Shake : uint8_t {
  kNone,
  kSome,  // every fifth case of a row, alternately in reverse and random order
  kAll,   // every case, in reverse and twice in random order
};
/// "none", "some", "all", and the inverse; nothing for another word.
const char* name_of(Shake shake);
std::optional<Shake> shake_from(std::string_view word);

/// The other orders in which a case runs. place: SuiteCase::place.
std::vector<Order> orders_of(Shake shake, size_t place, uint64_t seed);

/// Programs recorded during its lifetime have this order.
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

/// Describes the first element in which two results of one case differ, with both values: "in
/// reverse order element 5 of output 0 is 2, in the device's own 1"; "" where all bits are equal.
/// Bytes: one array per output, described by `outputs`.
std::string order_difference(const std::vector<Tensor>& outputs, const Order& order,
                             const std::vector<std::vector<std::byte>>& reordered,
                             const std::vector<std::vector<std::byte>>& own);

}  // namespace mulciber::conformance
