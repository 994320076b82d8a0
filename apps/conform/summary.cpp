// The end of `mulciber conform`, print_summary() of conform.h: a table of statuses by op, or the
// same numbers as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/conform/conform.h"

namespace mulciber::apps {
namespace {

using namespace conformance;

struct OpSummary {
  std::string op;
  size_t cases = 0;
  std::array<size_t, kStatusCount> counts{};
  double worst_error = 0;
  std::string worst_case;
};

std::vector<OpSummary> by_op(const std::vector<CaseRecord>& cases) {
  std::vector<OpSummary> ops;
  for (const CaseRecord& record : cases) {
    auto op =
        std::find_if(ops.begin(), ops.end(), [&](const OpSummary& o) { return o.op == record.op; });
    if (op == ops.end()) op = ops.insert(ops.end(), {record.op});
    ++op->cases;
    ++op->counts[static_cast<size_t>(record.result.status)];
    if (op->worst_case.empty() || record.result.worst_error > op->worst_error) {
      op->worst_error = record.result.worst_error;
      op->worst_case = record.name;
    }
  }
  return ops;
}

}  // namespace

void print_summary(const ConformRun& run) {
  const Fingerprint& f = run.record.fingerprint;
  fmt::print("{} ({} {}){}\n", f.device, f.driver_name, f.driver_info,
             f.limits.empty() ? "" : ", limits " + f.limits);
  const auto totals = count_statuses(run.record.cases);
  const std::vector<OpSummary> ops = by_op(run.record.cases);
  size_t width = 5;
  for (const OpSummary& op : ops) width = std::max(width, op.op.size());
  std::string head = fmt::format("{:<{}} {:>7}", "op", width, "cases");
  auto columns = [&](const auto& counts) {
    std::string text;
    for (int i = 0; i < kStatusCount; ++i) {
      if (totals[i])
        text +=
            fmt::format(" {:>{}}", counts[i],
                        std::max<size_t>(6, std::string(name_of(static_cast<Status>(i))).size()));
    }
    return text;
  };
  std::array<std::string, kStatusCount> names;
  for (int i = 0; i < kStatusCount; ++i) names[i] = name_of(static_cast<Status>(i));
  fmt::print("{}{}  worst error over its bound\n", head, columns(names));
  for (const OpSummary& op : ops) {
    fmt::print("{:<{}} {:>7}{}", op.op, width, op.cases, columns(op.counts));
    if (op.worst_error > 0) fmt::print("  {:.3f} {}", op.worst_error, op.worst_case);
    fmt::print("\n");
  }
  fmt::print("{:<{}} {:>7}{}  in {:.0f} s{}\n", "all", width, run.record.cases.size(),
             columns(totals), run.seconds, run.record.complete ? "" : ", not complete");
  for (const std::string& line : run.unused_waivers) fmt::print("{}\n", line);
}

void print_summary_json(const ConformRun& run, const std::vector<Change>& changed, int code) {
  using Json = nlohmann::json;
  auto counts_json = [](const auto& counts) {
    Json json = Json::object();
    for (int i = 0; i < kStatusCount; ++i) {
      if (counts[i]) json[name_of(static_cast<Status>(i))] = counts[i];
    }
    return json;
  };
  auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  Json ops = Json::array(), bad = Json::array(), changes = Json::array();
  for (const OpSummary& op : by_op(run.record.cases)) {
    ops.push_back({{"op", op.op},
                   {"cases", op.cases},
                   {"statuses", counts_json(op.counts)},
                   {"worst_error", number(op.worst_error)},
                   {"worst_case", op.worst_case}});
  }
  for (const CaseRecord& r : run.record.cases) {
    if (is_good(r.result.status)) continue;
    bad.push_back(
        {{"name", r.name}, {"status", name_of(r.result.status)}, {"detail", r.result.detail}});
  }
  for (const Change& c : changed) {
    changes.push_back({{"name", c.name},
                       {"before", c.before ? Json(name_of(*c.before)) : Json(nullptr)},
                       {"now", name_of(c.now)},
                       {"direction", name_of(c.direction)},
                       {"detail", c.detail}});
  }
  const Json json = {
      {"fingerprint", Json::parse(to_line(run.record.fingerprint)).at("fingerprint")},
      {"cases", run.record.cases.size()},
      {"complete", run.record.complete},
      {"seconds", run.seconds},
      {"statuses", counts_json(count_statuses(run.record.cases))},
      {"ops", ops},
      {"not_good", bad},
      {"changes", changes},
      {"unused_waivers", run.unused_waivers},
      {"exit_code", code}};
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_changes(const std::vector<Change>& changed) {
  if (changed.empty()) fmt::print("no case differs from the baseline\n");
  for (const Change& c : changed) {
    fmt::print("{}: {}: {} -> {}{}\n", name_of(c.direction), c.name,
               c.before ? name_of(*c.before) : "(new)", name_of(c.now),
               c.detail.empty() ? "" : " (" + c.detail + ")");
  }
}

}  // namespace mulciber::apps
