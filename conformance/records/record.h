// The record of a run of the suite: JSON lines, written while it runs and read by every report. The
// first line is {"kind":"run","fingerprint":{...}}, then {"kind":"case",...} for each case, and
// last {"kind":"summary",...}. A file without a summary is from a run that was stopped; it can be
// resumed.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/records/status.h"

namespace mulciber::conformance {

/// The subject of a run, in enough detail to test it again.
struct Fingerprint {
  std::string device;
  std::string driver_id;  // "mesa_llvmpipe": VkDriverId without its prefix and in lower case
  std::string driver_name, driver_info;
  std::string driver_version;       // "22.3.6"; from driver_info where the packed number is not the
                                    // driver's own
  std::string conformance_version;  // Vulkan CTS that the driver claims to pass, "1.3.1.1"
  std::string api_version;          // "1.3.230"
  std::string limits;               // masks in force: "no-fp16,shared=16384"
  std::vector<std::string> features;                 // features after the masks, in words
  std::map<std::string, std::string> device_limits;  // "maxStorageBufferRange" -> "134217728"
  std::string second_queue;   // load on the second queue during the cases, or why there was none
  std::string host;           // "Linux x86_64"
  std::string suite_version;  // Mulciber's version
  std::string git_revision;   // it was built from; "unknown" outside git, "-dirty" with changes
  std::string glslang_version;
  std::string spirv_hash;  // 64-bit FNV-1a over the bytes of all rows; below for each row by id
  std::map<std::string, std::string> row_hashes;
  uint64_t seed = 0;
  uint32_t repeats = 0;
  std::string shake = "none";  // the cases that ran in other orders: a name of Shake
  bool validated = false;      // under the Khronos validation layer
  std::string selection;       // the selected cases, as options: "--mustpass --fraction 0,8"
  std::string started;         // UTC, ISO 8601
};

/// The first difference that makes two fingerprints those of different experiments ("driver_version
/// 22.3.6, before 25.0.7"), or "". Start times and the selected cases are not differences.
std::string difference(const Fingerprint& now, const Fingerprint& before);

/// The result of a case.
struct CaseRecord {
  std::string name;   // "mulciber.matmul.tiled_f32.m33_n64_k130"
  std::string op;     // "matmul"
  std::string row;    // id of the row, or "" where selection chooses
  std::string types;  // "f32 f16": activations, weights
  CaseResult result;
  std::string waived;  // reason and link of a waiver that changed the status to Waiver
  Status waived_from = Status::kPass;  // the status before
};

struct RunRecord {
  Fingerprint fingerprint;
  std::vector<CaseRecord> cases;  // each name once, in the order of completion
  bool complete = false;          // the run reached its end
  uint64_t whole_bytes = 0;       // bytes of the file up to the end of the last complete line
};

/// Number of cases for each status, by its number.
std::array<size_t, kStatusCount> count_statuses(const std::vector<CaseRecord>& cases);

/// The lines of a file, without the line's end.
std::string to_line(const Fingerprint& fingerprint);
std::string to_line(const CaseRecord& record);
std::string summary_line(const std::vector<CaseRecord>& cases, double seconds);
/// Parses a line of one of the first two kinds. Throws ModelError with `where`.
Fingerprint read_fingerprint(std::string_view line, const std::string& where);
CaseRecord read_case(std::string_view line, const std::string& where);

/// Reads a file of JSON lines, even if its last line is incomplete. If a case occurs twice, the
/// later line counts. Throws ModelError when there is no such file, or it has another format.
RunRecord read_run(const std::filesystem::path& file);

/// Writes a run line by line; written lines are in the file even if the process dies.
class RunWriter {
 public:
  /// Begins a file with its first line. Throws ModelError when it cannot be written.
  RunWriter(const std::filesystem::path& file, const Fingerprint& fingerprint);
  /// Continues where `before`, which read_run() read from the file, ended.
  RunWriter(const std::filesystem::path& file, const RunRecord& before);
  ~RunWriter();
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  void add(const CaseRecord& record);
  void finish(const std::vector<CaseRecord>& cases, double seconds);

 private:
  void open(int flags);
  void write_line(std::string line);
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace mulciber::conformance
