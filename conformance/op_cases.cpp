// Every op's cases. An op is in the suite, the tests and the benchmarks by standing here.
#include "conformance/op_case.h"

namespace mulciber::conformance {

const OpCases& matmul_cases();
const OpCases& attention_cases();
const OpCases& attention_map_cases();
const OpCases& softmax_cases();
const OpCases& layer_norm_cases();
const OpCases& rms_norm_cases();
const OpCases& embedding_cases();
const OpCases& append_cache_cases();
const OpCases& copy_cases();
const OpCases& rope_append_cases();
const OpCases& elementwise_cases();
const OpCases& top_k_cases();
const OpCases& beam_step_cases();
const OpCases& follow_beams_cases();
const OpCases& sample_scan_cases();
const OpCases& sample_choose_cases();
const OpCases& recurrent_cell_cases();
const OpCases& expert_matmul_cases();

std::span<const OpCases* const> all_op_cases() {
  static const OpCases* const kAll[] = {
      &matmul_cases(),        &attention_cases(),      &attention_map_cases(),
      &softmax_cases(),       &layer_norm_cases(),     &rms_norm_cases(),
      &embedding_cases(),     &append_cache_cases(),   &copy_cases(),
      &rope_append_cases(),   &elementwise_cases(),    &top_k_cases(),
      &beam_step_cases(),     &follow_beams_cases(),   &sample_scan_cases(),
      &sample_choose_cases(), &recurrent_cell_cases(), &expert_matmul_cases(),
  };
  return kAll;
}

}  // namespace mulciber::conformance
