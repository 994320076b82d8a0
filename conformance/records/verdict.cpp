#include "conformance/records/verdict.h"

#include <fmt/format.h>

#include <set>

namespace mulciber::conformance {
namespace {

std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
  }
  return text;
}

/// "3 wrong results", "1 crash".
std::string counted(Status status, size_t count) {
  struct Noun {
    Status status;
    const char *one, *many;
  };
  static const Noun kNouns[] = {
      {Status::kFail, "wrong result", "wrong results"},
      {Status::kFlaky, "result that changed from run to run",
       "results that changed from run to run"},
      {Status::kMistrusted, "check without meaning", "checks without meaning"},
      {Status::kResourceError, "lack of memory", "lacks of memory"},
      {Status::kTimeout, "hang", "hangs"},
      {Status::kCrash, "crash", "crashes"},
      {Status::kDeviceLost, "lost device", "lost devices"},
      {Status::kInternalError, "fault of the suite", "faults of the suite"}};
  for (const Noun& noun : kNouns) {
    if (noun.status == status)
      return fmt::format("{} {}", with_commas(count), count == 1 ? noun.one : noun.many);
  }
  return fmt::format("{} {}", with_commas(count), name_of(status));
}

}  // namespace

std::string with_commas(size_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

RunVerdict verdict_of(const RunRecord& run) {
  const auto counts = count_statuses(run.cases);
  const auto count = [&](Status status) { return counts[static_cast<size_t>(status)]; };
  const size_t unsupported = count(Status::kNotSupported), tried = run.cases.size() - unsupported;
  size_t bad = 0;
  std::vector<std::string> kinds;
  for (int i = 0; i < kStatusCount; ++i) {
    const Status status = static_cast<Status>(i);
    if (is_good(status) || counts[i] == 0) continue;
    bad += counts[i];
    kinds.push_back(counted(status, counts[i]));
  }
  const std::string stopped = run.complete ? "" : "The run was stopped before its end. ";
  if (tried == 0)
    return {Tone::kUnknown, stopped + "Nothing was tested: the device runs none of these cases."};

  std::string rest;
  if (unsupported) {
    rest += fmt::format(" {} more were not run: the device or this build lacks what they need.",
                        with_commas(unsupported));
  }
  if (const size_t known = count(Status::kWaiver)) {
    rest += fmt::format(" {} fail and are known to.", with_commas(known));
  }
  if (const size_t poor = count(Status::kQualityWarning)) {
    rest += fmt::format(" {} lost more precision than usual, within what Vulkan permits.",
                        with_commas(poor));
  }
  if (bad == 0) {
    const bool all = count(Status::kWaiver) == 0;
    return {
        run.complete ? Tone::kGood : Tone::kUnknown,
        fmt::format(
            "{}No {}fault found: {}{} cases that this driver can run came out right, every time.{}",
            stopped, all ? "" : "new ",
            all ? "all " : fmt::format("{} of the ", with_commas(tried - count(Status::kWaiver))),
            with_commas(tried), rest)};
  }
  std::set<std::string> ops;
  for (const CaseRecord& record : run.cases) {
    if (!is_good(record.result.status)) ops.insert(record.op);
  }
  return {
      Tone::kBad,
      fmt::format(
          "{}Do not trust this driver with {} yet: {} of the {} cases that it can run went wrong "
          "({}).{}",
          stopped,
          ops.size() > 4 ? fmt::format("{} of the kernels", ops.size())
                         : listed({ops.begin(), ops.end()}),
          with_commas(bad), with_commas(tried), listed(kinds), rest)};
}

std::string title_of(const Fingerprint& f) {
  std::string title = f.driver_name;
  if (title.empty()) title = f.device;
  const std::string version = f.driver_info.empty() ? f.driver_version : f.driver_info;
  if (!version.empty()) title += (title.empty() ? "" : ", ") + version;
  if (!f.limits.empty()) title += " with " + f.limits;
  return title;
}

std::vector<std::pair<std::string, std::string>> facts_of(const Fingerprint& f) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"device", f.device},
      {"driver", f.driver_name},
      {"driver id", f.driver_id},
      {"driver info", f.driver_info},
      {"driver version", f.driver_version},
      {"Vulkan", f.api_version},
      {"claims Vulkan CTS", f.conformance_version},
      {"masks", f.limits},
      {"features", listed(f.features)},
      {"second queue", f.second_queue},
      {"host", f.host},
      {"started", f.started},
      {"runs of each case", std::to_string(f.repeats)},
      {"other orders", f.shake == "all"    ? "each case in reverse and twice at random"
                       : f.shake == "some" ? "every fifth case, in reverse or at random by turns"
                                           : "none"},
      {"seed", std::to_string(f.seed)},
      {"validation layer", f.validated ? "on" : "off"},
      {"Mulciber", f.suite_version},
      {"git revision", f.git_revision},
      {"glslang", f.glslang_version},
      {"SPIR-V hash", f.spirv_hash}};
  for (const auto& [name, value] : f.device_limits) facts.emplace_back(name, value);
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

}  // namespace mulciber::conformance
