// Every case of the suite under its name: each row of kernels.def with each sample of its op.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/run_case.h"

namespace mulciber::conformance {

struct SuiteCase {
  std::string name;   // "mulciber.matmul.shuffle_f32_f16.m33_n64_k130.bias_gelu": stable, unique
  std::string op;     // "matmul": reports group by it
  std::string row;    // id of the row, or "" where selection chooses
  std::string types;  // "f32 f16": activations, weights
  bool must_pass = false;  // in the short list, which runs within minutes on a software driver
  size_t place = 0;        // index among the cases of its row or kind with the same must_pass
  /// The case itself, for --repro; null for a case of several programs (a model).
  std::shared_ptr<const OpCase> op_case;
  std::function<CaseResult(Device&, const RunOptions&)> run;
};

/// All cases of ops and blocks, for any device, in a fixed order; model_cases() gives those of
/// models. Made on first use; listing draws no inputs.
const std::vector<SuiteCase>& suite();
/// The case of that name, or null.
const SuiteCase* find_case(std::string_view name);

}  // namespace mulciber::conformance
