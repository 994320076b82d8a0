// A run of the suite as it is kept: JSON lines, written while it runs, read by every report. The
// first line is {"kind":"run","fingerprint":{...}}, then follows {"kind":"case",...} per case, and
// after the last
// {"kind":"summary",...}. A file without a summary is of a run that was stopped; it can be resumed.
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

/// What was tested, in enough words to test the same again.
struct Fingerprint {
  std::string device;
  std::string driver_id;  // "mesa_llvmpipe": VkDriverId without its prefix and in lower case
  std::string driver_name, driver_info;
  std::string driver_version;  // "22.3.6"; as driver_info says where the packed number is not the
                               // driver's own
  std::string conformance_version;    // of the Vulkan CTS that the driver claims, "1.3.1.1"
  std::string api_version;            // "1.3.230"
  std::string limits;                 // masks in force: "no-fp16,shared=16384"
  std::vector<std::string> features;  // what is left after the masks, in words
  std::map<std::string, std::string> device_limits;  // "maxStorageBufferRange" -> "134217728"
  std::string second_queue;   // what kept the device busy beside the cases, or why nothing did
  std::string host;           // "Linux x86_64"
  std::string suite_version;  // of Mulciber
  std::string git_revision;   // it was built from; "unknown" outside git, "-dirty" with changes
  std::string glslang_version;
  std::string spirv_hash;  // over all rows, and below of each by its id: 64-bit FNV-1a of the bytes
  std::map<std::string, std::string> row_hashes;
  uint64_t seed = 0;
  uint32_t repeats = 0;
  std::string shake = "none";  // which cases ran in other orders: a name of Shake
  bool validated = false;      // under the Khronos validation layer
  std::string selection;  // which cases were asked for, as options: "--mustpass --fraction 0,8"
  std::string started;    // UTC, ISO 8601
};

/// The first thing that makes two fingerprints those of different experiments
/// ("driver_version 22.3.6, before 25.0.7"), or "". When they started is no difference, nor which
/// cases they ran.
std::string difference(const Fingerprint& now, const Fingerprint& before);

/// A case that has run.
struct CaseRecord {
  std::string name;   // "mulciber.matmul.tiled_f32.m33_n64_k130"
  std::string op;     // "matmul"
  std::string row;    // id of the row, or "" where selection chooses
  std::string types;  // "f32 f16": activations, weights
  CaseResult result;
  std::string waived;  // reason and link, where a waiver made a Waiver of another status
  Status waived_from = Status::kPass;  // that status
};

struct RunRecord {
  Fingerprint fingerprint;
  std::vector<CaseRecord> cases;  // each name once; in the order in which they ended
  bool complete = false;          // the run came to its end
  uint64_t whole_bytes = 0;       // of the file, up to the end of the last whole line
};

/// How many cases have each status, by its number.
std::array<size_t, kStatusCount> count_statuses(const std::vector<CaseRecord>& cases);

/// The lines of a file, without the line's end.
std::string to_line(const Fingerprint& fingerprint);
std::string to_line(const CaseRecord& record);
std::string summary_line(const std::vector<CaseRecord>& cases, double seconds);
/// Reads a line of the first two kinds. Throws ModelError with `where`.
Fingerprint read_fingerprint(std::string_view line, const std::string& where);
CaseRecord read_case(std::string_view line, const std::string& where);

/// Reads a file of JSON lines, also one that breaks off in the middle of its last line. Of a case
/// that stands there twice the later counts. Throws ModelError when there is no such file, or it is
/// none of ours.
RunRecord read_run(const std::filesystem::path& file);

/// Writes a run line by line; what was written is in the file even when the process dies.
class RunWriter {
 public:
  /// Begins a file with its first line. Throws ModelError when it cannot be written.
  RunWriter(const std::filesystem::path& file, const Fingerprint& fingerprint);
  /// Goes on where `before`, which read_run() read from the file, broke off.
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
