#include "conformance/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "conformance/case_program.h"

namespace mulciber::conformance {
namespace {

constexpr const char* kShakeNames[] = {"none", "some", "all"};

bool same_value(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

}  // namespace

const char* name_of(Shake shake) { return kShakeNames[static_cast<size_t>(shake)]; }

std::optional<Shake> shake_from(std::string_view word) {
  for (size_t i = 0; i < std::size(kShakeNames); ++i) {
    if (word == kShakeNames[i]) return static_cast<Shake>(i);
  }
  return std::nullopt;
}

std::vector<Order> orders_of(Shake shake, size_t place, uint64_t seed) {
  const auto first = static_cast<uint32_t>(seed);
  std::vector<Order> orders = {{Order::kReverse}, {Order::kRandom, first + 1}};
  switch (shake) {
    case Shake::kNone: return {};
    // A software driver compiles a pipeline anew for each order, which takes longer than all runs.
    // Five is coprime to the usual numbers of parts of --fraction, so each part has its share.
    case Shake::kSome:
      return place % 5 == 0 ? std::vector<Order>{orders[place / 5 % 2]} : std::vector<Order>();
    case Shake::kAll: break;
  }
  orders.push_back({Order::kRandom, first + 2});
  // Shared memory may still hold the right values from an earlier run, which hides a missing
  // barrier. So each order is the first one for some cases.
  std::rotate(orders.begin(), orders.begin() + static_cast<ptrdiff_t>(place % 3), orders.end());
  return orders;
}

std::string order_difference(const std::vector<Tensor>& outputs, const Order& order,
                             const std::vector<std::vector<std::byte>>& reordered,
                             const std::vector<std::vector<std::byte>>& own) {
  for (size_t i = 0; i < own.size(); ++i) {
    if (reordered[i] == own[i]) continue;
    const std::string where =
        fmt::format("in {} order of workgroups and subgroups", name_of(order));
    const Tensor& output = outputs[i];
    const std::vector<double> got = values_of(reordered[i], output.type, output.shape.columns()),
                              expected = values_of(own[i], output.type, output.shape.columns());
    for (size_t element = 0; element < expected.size(); ++element) {
      if (same_value(got[element], expected[element])) continue;
      return fmt::format("{} element {} of output {} is {:.9g}, in the device's own {:.9g}", where,
                         element, i, got[element], expected[element]);
    }
    const auto [at, other] = std::mismatch(own[i].begin(), own[i].end(), reordered[i].begin());
    return fmt::format("{} byte {} of output {} is {}, in the device's own {}", where,
                       at - own[i].begin(), i, static_cast<int>(*other), static_cast<int>(*at));
  }
  return "";
}

}  // namespace mulciber::conformance
