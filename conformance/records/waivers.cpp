#include "conformance/records/waivers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/select.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

Waiver::Version parse_version(const std::string& text, const std::string& where) {
  Waiver::Version v{};
  int length = 0;
  const int count = std::sscanf(text.c_str(), "%u.%u.%u%n", &v[0], &v[1], &v[2], &length);
  if (count != 3 || static_cast<size_t>(length) != text.size()) {
    throw ModelError(where, fmt::format("'{}' is no version", text), "give three numbers: 22.3.6");
  }
  return v;
}

Waiver waiver_of(const nlohmann::json& json, const std::string& where) {
  Waiver w;
  for (const auto& [key, value] : json.items()) {
    const std::string text = value.get<std::string>();
    if (key == "driver")
      w.driver = text;
    else if (key == "from")
      w.from = parse_version(text, where);
    else if (key == "to")
      w.to = parse_version(text, where);
    else if (key == "device")
      w.device = text;
    else if (key == "cases")
      w.cases = text;
    else if (key == "reason")
      w.reason = text;
    else if (key == "link")
      w.link = text;
    else
      throw ModelError(where, fmt::format("a waiver has no '{}'", key),
                       "it has driver, from, to, device, cases, reason and link");
  }
  if (w.cases.empty() || w.reason.empty()) {
    throw ModelError(where, "a waiver lacks 'cases' or 'reason'",
                     "say which cases, and why they may fail");
  }
  return w;
}

}  // namespace

const std::vector<Waiver>& known_waivers() {
  static const std::vector<Waiver> list = {
      {.driver = "mesa_llvmpipe",
       .from = {26, 1, 0},
       .to = {26, 1, 6},
       .device = "256 bits",
       .cases = "mulciber.matmul.unrolled_4_f32.*.relu.bias*",
       .reason = "wrong and varying sums with vectors of 256 bits; the row is not chosen there",
       .link = "docs/reference/conformance-findings.md"},
  };
  return list;
}

std::vector<Waiver> read_waivers(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw ModelError(file.string(), "cannot be read", "give a JSON file with a list of waivers");
  std::vector<Waiver> list;
  try {
    const auto json = nlohmann::json::parse(in);
    if (!json.is_array())
      throw ModelError(file.string(), "is no list", "give a JSON list of waivers");
    for (const auto& entry : json)
      list.push_back(waiver_of(entry, fmt::format("{}, waiver {}", file.string(), list.size())));
  } catch (const nlohmann::json::exception& error) {
    throw ModelError(file.string(), fmt::format("cannot be read as waivers ({})", error.what()),
                     "give a JSON list of objects whose values are text");
  }
  return list;
}

bool applies(const Waiver& waiver, const Fingerprint& fingerprint) {
  if (!waiver.driver.empty() && waiver.driver != fingerprint.driver_id) return false;
  if (fingerprint.device.find(waiver.device) == std::string::npos) return false;
  const Waiver::Version version = parse_version(fingerprint.driver_version, "fingerprint");
  return waiver.from <= version && version <= waiver.to;
}

Waivers::Waivers(const std::vector<Waiver>& all, const Fingerprint& fingerprint) {
  for (const Waiver& waiver : all) {
    if (applies(waiver, fingerprint)) entries_.push_back({waiver});
  }
}

void Waivers::apply(CaseRecord& record) {
  if (is_good(record.result.status)) return;
  for (Entry& entry : entries_) {
    const Waiver& waiver = entry.waiver;
    if (!matches(waiver.cases, record.name)) continue;
    entry.used = true;
    record.waived =
        waiver.link.empty() ? waiver.reason : fmt::format("{} ({})", waiver.reason, waiver.link);
    record.waived_from = record.result.status;
    record.result.status = Status::kWaiver;
    return;
  }
}

std::vector<std::string> Waivers::unused(const std::vector<CaseRecord>& cases) const {
  std::vector<std::string> lines;
  for (const Entry& entry : entries_) {
    if (entry.used) continue;
    const Waiver& waiver = entry.waiver;
    const auto count = std::count_if(cases.begin(), cases.end(), [&](const CaseRecord& record) {
      return matches(waiver.cases, record.name);
    });
    lines.push_back(count == 0
                        ? fmt::format("the waiver for {} matches no case that ran", waiver.cases)
                        : fmt::format("the waiver for {} is not needed: all its {} cases are good",
                                      waiver.cases, count));
  }
  return lines;
}

}  // namespace mulciber::conformance
