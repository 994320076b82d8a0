// Rows chosen by measurement: for problems of a size, the row that was quickest on this device and
// driver version. conformance/tune.h measures; selection takes a choice before the table's order as
// long as the row still serves. One file per driver version beside the verdicts (deny_list.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver_file.h"

namespace mulciber {

/// What problems share a choice: "matmul f32 q4_0 1,2048,768". Extents above 8 that change from
/// program to program (rows, positions) count up to the next power of two. "" for problems without
/// extents, which nothing chooses for.
std::string choice_key(const Problem& problem);

/// The problems that programs asked selection for and that measurement can choose for, by
/// choice_key().
struct AskedProblems {
  struct Asked {
    Problem problem;
    size_t times = 0;
  };
  std::map<std::string, Asked> problems;

  void note(const Problem& problem);
};

struct Choice {
  std::string row;
  uint64_t hash = 0;                                         // row_hash() of the row as measured
  std::vector<std::pair<std::string, double>> milliseconds;  // of each candidate, by row
};

class Choices {
 public:
  /// Reads what is on disk for this device and driver version. `cache_folder`: as DeviceOptions has
  /// it.
  Choices(const Capabilities& device, const std::string& cache_folder);

  const std::map<std::string, Choice>& all() const { return all_; }
  /// Those whose row is still the one that was measured, by choice_key(): the row's id.
  std::map<std::string, std::string> valid() const;

  /// Adds to what is on disk, or replaces it. False where there is no folder to write to.
  bool keep(const std::map<std::string, Choice>& more);
  void forget();
  /// Empty where there is no folder to write to.
  const std::filesystem::path& file() const { return file_.path(); }

 private:
  void read();

  DriverFile file_;
  std::map<std::string, Choice> all_;
};

}  // namespace mulciber
