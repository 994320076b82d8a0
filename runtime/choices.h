// Rows chosen by measurement: for problems of a size, the fastest row on this device and driver
// version. conformance/tune.h measures. Selection takes a choice before the table's order as long
// as the row still serves. Each driver version has one file beside the verdicts (deny_list.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver_file.h"

namespace mulciber {

/// The key under which problems share a choice: "matmul f32 q4_0 1,2048,768". Extents above 8 that
/// change from program to program (rows, positions) are rounded up to the next power of two. "" for
/// problems without extents, for which no row is chosen.
std::string choice_key(const Problem& problem);

/// Problems that programs asked selection for and that measurement can choose rows for, keyed by
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
  uint64_t hash = 0;                                         // row_hash() of the measured row
  std::vector<std::pair<std::string, double>> milliseconds;  // time of each candidate, by row
};

class Choices {
 public:
  /// Reads the file of this device and driver version. `cache_folder` is
  /// DeviceOptions::cache_folder.
  Choices(const Capabilities& device, const std::string& cache_folder);

  const std::map<std::string, Choice>& all() const { return all_; }
  /// Choices whose row is still the measured one: choice_key() to the row's id.
  std::map<std::string, std::string> valid() const;

  /// Adds choices to the file or replaces them. False when there is no folder to write to.
  bool keep(const std::map<std::string, Choice>& more);
  void forget();
  /// Path of the file; empty when there is no folder to write to.
  const std::filesystem::path& file() const { return file_.path(); }

 private:
  void read();

  DriverFile file_;
  std::map<std::string, Choice> all_;
};

}  // namespace mulciber
