// Comparison of a model's expected results, case by case, with the device's.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/core/model.h"

namespace mulciber {

struct VerifyOptions {
  std::optional<double> tolerance;  // absolute, for all real tensors; none: one for each
  /// Called before each case with its name, its index and the number of cases.
  std::function<void(const std::string& name, size_t index, size_t total)> on_case;
};

/// One expected tensor.
struct VerifyResult {
  enum class Status { kPass, kFail, kNotCompared };
  std::string case_name, kind, tensor;
  Status status = Status::kNotCompared;
  double error = 0;      // largest absolute difference; ids: number that differ
  double tolerance = 0;  // 0 for ids
  std::string detail;    // position of the largest difference, or why nothing was compared
};

struct VerifyReport {
  std::vector<VerifyResult> results;

  size_t count(VerifyResult::Status status) const;
  /// Returns 0 if all compared tensors are within tolerance, 1 if one is not, 3 if nothing could be
  /// compared.
  int exit_code() const;
};

/// Runs every case that the .json beside `expected` (a .safetensors file) lists.
/// Tolerances: real tensors max(1e-4, 20 x the case's f32_max_abs_diff), scores 1e-3, ids exact;
/// for models in 16-bit storage 5e-2 where these are smaller. NaN never passes. Throws ModelError
/// when the files are malformed or contradict each other.
VerifyReport verify(Model& model, const std::filesystem::path& expected,
                    const VerifyOptions& options = {});

}  // namespace mulciber
