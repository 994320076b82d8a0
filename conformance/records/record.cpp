#include "conformance/records/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

// JSON has no infinity; an output that is NaN where a number is expected has an infinite error.
Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double json_number(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return 0;
  return found->is_null() ? std::numeric_limits<double>::infinity() : found->get<double>();
}

template <typename Value>
void read(const Json& object, const char* name, Value& value) {
  if (const auto found = object.find(name); found != object.end()) value = found->get<Value>();
}

/// Calls `visit` with name and value of each member that is equal in runs of one experiment.
template <typename Print, typename Visit>
void visit_members(Print& f, Visit&& visit) {
  visit("device", f.device);
  visit("driver_id", f.driver_id);
  visit("driver_name", f.driver_name);
  visit("driver_info", f.driver_info);
  visit("driver_version", f.driver_version);
  visit("conformance_version", f.conformance_version);
  visit("api_version", f.api_version);
  visit("limits", f.limits);
  visit("features", f.features);
  visit("device_limits", f.device_limits);
  visit("second_queue", f.second_queue);
  visit("host", f.host);
  visit("suite_version", f.suite_version);
  visit("git_revision", f.git_revision);
  visit("glslang_version", f.glslang_version);
  visit("spirv_hash", f.spirv_hash);
  visit("row_hashes", f.row_hashes);
  visit("seed", f.seed);
  visit("repeats", f.repeats);
  visit("shake", f.shake);
  visit("validated", f.validated);
}

Json counts_json(const std::vector<CaseRecord>& cases) {
  Json counts = Json::object();
  const auto numbers = count_statuses(cases);
  for (int i = 0; i < kStatusCount; ++i) {
    if (numbers[i]) counts[name_of(static_cast<Status>(i))] = numbers[i];
  }
  return counts;
}

Status status_of(const Json& object, const char* name) {
  const std::string word = object.at(name).get<std::string>();
  const std::optional<Status> status = status_from(word);
  if (!status) throw ModelError("", fmt::format("unknown status '{}'", word), "");
  return *status;
}

Fingerprint fingerprint_of_line(const Json& line) {
  const Json& json = line.at("fingerprint");
  Fingerprint f;
  visit_members(f, [&](const char* name, auto& value) { read(json, name, value); });
  read(json, "selection", f.selection);
  read(json, "started", f.started);
  return f;
}

CaseRecord case_of(const Json& line) {
  CaseRecord r;
  r.name = line.at("name").get<std::string>();
  read(line, "op", r.op);
  read(line, "row", r.row);
  read(line, "types", r.types);
  r.result.status = status_of(line, "status");
  read(line, "detail", r.result.detail);
  r.result.worst_error = json_number(line, "worst_error");
  r.result.nmse = json_number(line, "nmse");
  read(line, "repeats", r.result.repeats);
  read(line, "orders", r.result.orders);
  read(line, "seconds", r.result.seconds);
  read(line, "waived", r.waived);
  if (line.contains("waived_from")) r.waived_from = status_of(line, "waived_from");
  return r;
}

// Applies `use` to a line; errors of the JSON library and of a status become ModelErrors.
template <typename Use>
auto with_line(std::string_view line, const std::string& where, Use&& use) {
  const char* kRemedy = "give a record that `mulciber conform` wrote";
  try {
    return use(Json::parse(line));
  } catch (const nlohmann::json::exception& error) {
    throw ModelError(where, fmt::format("is no line of a conformance run ({})", error.what()),
                     kRemedy);
  } catch (const ModelError& error) {
    throw ModelError(where, error.problem(), kRemedy);
  }
}

std::string kind_of(const Json& line) { return line.at("kind").get<std::string>(); }

}  // namespace

std::string difference(const Fingerprint& now, const Fingerprint& before) {
  // Two passes, because the members have several types: one writes each value down, the other
  // compares.
  std::vector<std::string> values;
  visit_members(before,
                [&](const char*, const auto& value) { values.push_back(json_line(Json(value))); });
  size_t index = 0;
  std::string found;
  visit_members(now, [&](const char* name, const auto& value) {
    const std::string& other = values[index++];
    if (!found.empty()) return;
    const std::string text = json_line(Json(value));
    if (text == other) return;
    found = text.size() + other.size() < 120 ? fmt::format("{} {}, before {}", name, text, other)
                                             : name;
  });
  return found;
}

std::array<size_t, kStatusCount> count_statuses(const std::vector<CaseRecord>& cases) {
  std::array<size_t, kStatusCount> counts{};
  for (const CaseRecord& record : cases) ++counts[static_cast<size_t>(record.result.status)];
  return counts;
}

std::string to_line(const Fingerprint& fingerprint) {
  Json json = Json::object();
  visit_members(fingerprint, [&](const char* name, const auto& value) { json[name] = value; });
  json["selection"] = fingerprint.selection;
  json["started"] = fingerprint.started;
  return json_line({{"kind", "run"}, {"fingerprint", json}});
}

std::string to_line(const CaseRecord& r) {
  Json json = {{"kind", "case"},
               {"name", r.name},
               {"op", r.op},
               {"row", r.row},
               {"types", r.types},
               {"status", name_of(r.result.status)},
               {"worst_error", json_number(r.result.worst_error)},
               {"nmse", json_number(r.result.nmse)},
               {"repeats", r.result.repeats},
               {"seconds", r.result.seconds}};
  if (!r.result.orders.empty()) json["orders"] = r.result.orders;
  if (!r.result.detail.empty()) json["detail"] = r.result.detail;
  if (!r.waived.empty()) {
    json["waived"] = r.waived;
    json["waived_from"] = name_of(r.waived_from);
  }
  return json_line(json);
}

std::string summary_line(const std::vector<CaseRecord>& cases, double seconds) {
  return json_line({{"kind", "summary"},
                    {"cases", cases.size()},
                    {"seconds", seconds},
                    {"statuses", counts_json(cases)}});
}

Fingerprint read_fingerprint(std::string_view line, const std::string& where) {
  return with_line(line, where, fingerprint_of_line);
}

CaseRecord read_case(std::string_view line, const std::string& where) {
  return with_line(line, where, case_of);
}

RunRecord read_run(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw ModelError(file.string(), fmt::format("cannot be read ({})", std::strerror(errno)),
                     "give a record that `mulciber conform` wrote");
  }
  RunRecord run;
  std::unordered_map<std::string, size_t> places;
  std::string line;
  size_t number = 0;
  // A line without its end was cut off: getline then reaches the end of the file.
  while (std::getline(in, line) && !in.eof()) {
    const std::string where = fmt::format("{}:{}", file.string(), ++number);
    with_line(line, where, [&](const Json& json) {
      const std::string kind = kind_of(json);
      if ((number == 1) != (kind == "run")) {
        throw ModelError("", "the first line of a run, and no other, is its fingerprint", "");
      }
      if (kind == "run") {
        run.fingerprint = fingerprint_of_line(json);
      } else if (kind == "case") {
        CaseRecord record = case_of(json);
        const auto [place, added] = places.try_emplace(record.name, run.cases.size());
        if (added) run.cases.emplace_back();
        run.cases[place->second] = std::move(record);
      }
      run.complete = kind == "summary";
    });
    run.whole_bytes += line.size() + 1;
  }
  if (number == 0) {
    throw ModelError(file.string(), "holds no whole line",
                     "give a record that `mulciber conform` wrote");
  }
  return run;
}

RunWriter::RunWriter(const std::filesystem::path& file, const Fingerprint& fingerprint)
    : file_(file) {
  open(O_TRUNC);
  write_line(to_line(fingerprint));
}

RunWriter::RunWriter(const std::filesystem::path& file, const RunRecord& before) : file_(file) {
  open(0);
  if (ftruncate(descriptor_, static_cast<off_t>(before.whole_bytes)) != 0) {
    throw ModelError(file_.string(), fmt::format("cannot be shortened ({})", std::strerror(errno)),
                     "");
  }
}

RunWriter::~RunWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

void RunWriter::open(int flags) {
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
  if (descriptor_ < 0) {
    throw ModelError(file_.string(), fmt::format("cannot be written ({})", std::strerror(errno)),
                     "choose a folder that exists and can be written to");
  }
}

void RunWriter::write_line(std::string line) {
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t count = write(descriptor_, line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw ModelError(file_.string(), fmt::format("cannot be written ({})", std::strerror(errno)),
                       "make room, and resume the run");
    }
    done += static_cast<size_t>(count);
  }
}

void RunWriter::add(const CaseRecord& record) { write_line(to_line(record)); }

void RunWriter::finish(const std::vector<CaseRecord>& cases, double seconds) {
  write_line(summary_line(cases, seconds));
}

}  // namespace mulciber::conformance
