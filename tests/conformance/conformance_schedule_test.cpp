// The runner's verdicts when children die, hang or lose the device; selection, waivers, baselines.
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "conformance/records/baseline.h"
#include "conformance/records/waivers.h"
#include "conformance/schedule.h"
#include "conformance/select.h"
#include "conformance/suite.h"
#include "tests/catch.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::conformance;

namespace {

/// The message of the SettingError that `action` throws; nothing when it throws none.
template <typename Action>
std::optional<std::string> setting_error(Action&& action) {
  try {
    action();
  } catch (const SettingError& error) {
    return error.what();
  }
  return std::nullopt;
}

// The fate of a case in a child that ran `before` others. kCrashUnseen is a crash between
// announcements.
enum class Fate { kPass, kCrash, kHang, kLose, kCrashUnseen };
using World = std::function<Fate(size_t index, size_t before)>;

/// Runs a schedule in which no process is started; checks that each case is settled once.
std::map<size_t, CaseResult> play(size_t count, size_t batch_size, const World& world,
                                  size_t* children = nullptr) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  Schedule schedule(all, batch_size, 1);
  std::map<size_t, CaseResult> settled;
  auto settle = [&](std::optional<Verdict> verdict) {
    if (verdict) CHECK(settled.emplace(verdict->index, verdict->result).second);
  };
  size_t used = 0;
  while (auto batch = schedule.next()) {
    REQUIRE(++used <= 20 * count);
    Batch left = *batch;
    ChildEnd end;
    for (size_t index : *batch) {
      const Fate fate = world(index, end.reported);
      if (fate == Fate::kCrash) end = {ChildEnd::kDied, "died of SIGSEGV", index, end.reported};
      if (fate == Fate::kCrashUnseen)
        end = {ChildEnd::kDied, "died of SIGSEGV", std::nullopt, end.reported};
      if (fate == Fate::kHang)
        end = {ChildEnd::kTimedOut, "killed after 60 s", index, end.reported};
      if (end.kind != ChildEnd::kFinished) break;
      std::erase(left, index);
      settle(schedule.reported(*batch, index,
                               {fate == Fate::kLose ? Status::kDeviceLost : Status::kPass}));
      ++end.reported;
      if (fate == Fate::kLose) {
        end.kind = ChildEnd::kDeviceLost;
        break;
      }
    }
    settle(schedule.ended(*batch, left, end));
  }
  CHECK(settled.size() == count);
  if (children) *children = used;
  return settled;
}

void check_only(const std::map<size_t, CaseResult>& settled, size_t odd, Status status) {
  for (const auto& [index, result] : settled) {
    INFO(index << ": " << result.detail);
    CHECK(result.status == (index == odd ? status : Status::kPass));
  }
}

std::vector<const SuiteCase*> pointers(const std::vector<SuiteCase>& cases) {
  std::vector<const SuiteCase*> list;
  for (const SuiteCase& c : cases) list.push_back(&c);
  return list;
}

CaseRecord record(std::string name, Status status) {
  CaseRecord r;
  r.name = std::move(name);
  r.result.status = status;
  return r;
}

}  // namespace

TEST_CASE("A case that crashes, hangs or loses the device is found, and no other suffers") {
  for (size_t odd : {0, 1, 29, 30, 58}) {
    auto world = [&](Fate fate) {
      return [=](size_t index, size_t) { return index == odd ? fate : Fate::kPass; };
    };
    size_t children = 0;
    check_only(play(59, 20, world(Fate::kCrash), &children), odd, Status::kCrash);
    CHECK(children <= 10);
    check_only(play(59, 20, world(Fate::kHang)), odd, Status::kTimeout);
    check_only(play(59, 20, world(Fate::kLose)), odd, Status::kDeviceLost);
    check_only(play(59, 20, world(Fate::kCrashUnseen), &children), odd, Status::kCrash);
    CHECK(children <= 20);  // halving
  }
}

TEST_CASE("A crash that happens beside other cases alone is flaky, and the detail says so") {
  const auto settled = play(40, 40, [](size_t index, size_t before) {
    return index == 7 && before > 0 ? Fate::kCrash : Fate::kPass;
  });
  check_only(settled, 7, Status::kFlaky);
  CHECK(settled.at(7).detail ==
        "the process died of SIGSEGV while this case ran, after 7 others; alone in a new "
        "process it gave Pass");
}

TEST_CASE("A driver that always crashes ends the run") {
  for (const auto& [index, result] : play(30, 10, [](size_t, size_t) { return Fate::kCrash; })) {
    INFO(index);
    CHECK(result.status == Status::kCrash);
  }
}

TEST_CASE("Cases are selected by glob, list and fraction") {
  const auto all = pointers(suite());
  SelectionRule rule;
  rule.filters = {"mulciber.softmax.*"};
  const auto softmax = select_cases(all, rule);
  CHECK(softmax.size() > 100);
  std::set<const SuiteCase*> seen;
  for (size_t part = 0; part < 3; ++part) {
    rule.fraction = {part, 3};
    for (const SuiteCase* c : select_cases(all, rule)) CHECK(seen.insert(c).second);
  }
  CHECK(seen == std::set<const SuiteCase*>(softmax.begin(), softmax.end()));

  SelectionRule listed;
  std::istringstream text("# two cases\n " + softmax[5]->name + "\r\n\n" + softmax[1]->name +
                          " # why\n");
  listed.caselist = read_caselist(text);
  CHECK(select_cases(all, listed) == std::vector<const SuiteCase*>{softmax[1], softmax[5]});
  listed.excludes = {softmax[1]->name};
  CHECK(select_cases(all, listed) == std::vector<const SuiteCase*>{softmax[5]});
  listed.caselist->push_back("mulciber.no_such_case");
  CHECK(setting_error([&] { select_cases(all, listed); })->find("no_such_case") !=
        std::string::npos);
  CHECK(parse_fraction("2,7").index == 2);
  for (const char* wrong : {"", "1", "3,3", "1,0", "a,b", "-1,2", "1,2,3"}) {
    INFO(wrong);
    CHECK(setting_error([&] { parse_fraction(wrong); }));
  }
}

TEST_CASE("A waiver covers its cases on its driver, and nothing else") {
  Fingerprint f;
  f.device = "llvmpipe (LLVM 15)";
  f.driver_id = "mesa_llvmpipe";
  f.driver_version = "22.3.6";
  tests::TemporaryFolder folder;
  const auto file = tests::write_file(folder.path() / "waivers.json", R"([
    {"driver": "mesa_llvmpipe", "from": "22.3.0", "to": "22.3.6", "device": "LLVM", "cases": "a.*",
     "reason": "known", "link": "issue 1"},
    {"driver": "mesa_llvmpipe", "to": "22.3.5", "cases": "*", "reason": "older"},
    {"driver": "nvidia_proprietary", "cases": "*", "reason": "another"},
    {"cases": "c.*", "reason": "mended"}, {"cases": "d.*", "reason": "none such"}])");
  Waivers waivers(read_waivers(file), f);
  std::vector<CaseRecord> cases = {
      record("a.fails", Status::kFail), record("a.passes", Status::kPass),
      record("b.fails", Status::kFail), record("c.passes", Status::kPass)};
  for (CaseRecord& r : cases) waivers.apply(r);
  CHECK(cases[0].result.status == Status::kWaiver);
  CHECK(cases[0].waived_from == Status::kFail);
  CHECK(cases[0].waived == "known (issue 1)");
  CHECK(cases[1].result.status == Status::kPass);
  CHECK(cases[2].result.status == Status::kFail);
  const std::vector<std::string> unused = waivers.unused(cases);
  REQUIRE(unused.size() == 2);
  CHECK(unused[0].find("c.*") != std::string::npos);
  CHECK(unused[0].find("not needed") != std::string::npos);
  CHECK(unused[1].find("matches no case") != std::string::npos);

  auto refused = [&](std::string_view text) {
    return tests::model_error(
               [&] { read_waivers(tests::write_file(folder.path() / "bad.json", text)); })
        .value_or("no error");
  };
  CHECK(refused("{").find("bad.json") != std::string::npos);
  CHECK(refused("{}").find("no list") != std::string::npos);
  CHECK(refused(R"([{"cases": "*"}])").find("reason") != std::string::npos);
  CHECK(refused(R"([{"cases": "*", "reason": "r", "form": "1.2.3"}])").find("form") !=
        std::string::npos);
  CHECK(refused(R"([{"cases": "*", "reason": "r", "from": "1.2"}])").find("1.2") !=
        std::string::npos);
  CHECK(refused(R"([{"cases": 5}])").find("bad.json") != std::string::npos);
}

TEST_CASE("The waivers of the suite are complete") {
  for (const Waiver& waiver : known_waivers()) {
    INFO(waiver.cases);
    CHECK_FALSE(waiver.driver.empty());
    CHECK_FALSE(waiver.reason.empty());
    CHECK_FALSE(waiver.link.empty());
    CHECK(std::any_of(suite().begin(), suite().end(),
                      [&](const SuiteCase& c) { return matches(waiver.cases, c.name); }));
  }
}

TEST_CASE("Against a baseline, only what is worse is worse") {
  const auto list = changes({record("same", Status::kFail), record("mended", Status::kFail),
                             record("broken", Status::kPass), record("lost", Status::kPass),
                             record("other", Status::kFail), record("gone", Status::kPass)},
                            {record("same", Status::kFail), record("mended", Status::kPass),
                             record("broken", Status::kFlaky),
                             record("lost", Status::kNotSupported), record("other", Status::kCrash),
                             record("new_bad", Status::kFail), record("new_good", Status::kPass)});
  std::map<std::string, Direction> by_name;
  for (const Change& change : list) by_name[change.name] = change.direction;
  CHECK(by_name == std::map<std::string, Direction>{{"mended", Direction::kBetter},
                                                    {"broken", Direction::kWorse},
                                                    {"lost", Direction::kWorse},
                                                    {"other", Direction::kOther},
                                                    {"new_bad", Direction::kWorse},
                                                    {"new_good", Direction::kOther}});
  CHECK(list.front().direction == Direction::kWorse);
}
