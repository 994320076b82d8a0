// Every op's cases. An op is in the suite, the tests and the benchmarks by standing here.
#include "conformance/op_case.h"

namespace mulciber::conformance {

const OpCases& matmul_cases();
const OpCases& attention_cases();
const OpCases& attention_map_cases();
const OpCases& append_cache_cases();
const OpCases& elementwise_cases();

std::span<const OpCases* const> all_op_cases() {
  static const OpCases* const kAll[] = {
      &matmul_cases(),
      &attention_cases(),
      &attention_map_cases(),
      &append_cache_cases(),
      &elementwise_cases(),
  };
  return kAll;
}

}  // namespace mulciber::conformance
