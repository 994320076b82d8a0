// A child of `mulciber conform`, run_conform_worker() of conform.h: runs the cases that it
// receives, one after the other, and announces each before it runs.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <unordered_map>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "apps/cli/child_process.h"
#include "apps/conform/conform.h"
#include "conformance/background_load.h"
#include "conformance/records/fingerprint.h"

namespace mulciber::apps {
namespace {

using namespace conformance;

// Each line is one write, so that a child that dies right after has still reported it.
void send(std::string line) {
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t count =
        write(ChildProcess::kResultDescriptor, line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) std::_Exit(kDeviceFailed);  // the parent is gone
    done += static_cast<size_t>(count);
  }
}

ChildSettings read_settings(const std::string& line) {
  const auto json = nlohmann::json::parse(line);
  ChildSettings s;
  s.device = json.at("device");
  s.limits = json.at("limits");
  s.cache_folder = json.at("cache_folder");
  s.validate = json.at("validate");
  s.seed = json.at("seed");
  s.repeats = json.at("repeats");
  s.shake = shake_from(json.at("shake").get<std::string>()).value();
  s.injections = json.at("injections");
  s.vectors = json.at("vectors");
  s.malformed = json.at("malformed");
  return s;
}

class Worker {
 public:
  explicit Worker(const ChildSettings& settings) : settings_(settings) {
    for (const SuiteCase* c : list_cases(settings)) cases_.emplace(c->name, c);
    for (const std::string& text : settings.injections)
      injections_.push_back(parse_injection(text));
    DeviceOptions device;
    device.device = settings.device;
    device.limits = settings.limits;
    device.cache_folder = settings.cache_folder;
    device.validate = settings.validate;
    device.second_queue = true;
    device.ignore_verdicts = true;  // a report may be about a row that failed its self-test
    device_ = Device::open(device);
    load_ = std::make_unique<BackgroundLoad>(*device_);
    Fingerprint fingerprint =
        fingerprint_of(*device_, {.repeats = settings.repeats, .seed = settings.seed});
    fingerprint.shake = name_of(settings.shake);
    send(to_line(fingerprint));
  }

  void run(const std::string& name) {
    send(nlohmann::json{{"kind", "start"}, {"name", name}}.dump());
    const SuiteCase& c = *cases_.at(name);
    RunOptions options{.repeats = settings_.repeats,
                       .seed = settings_.seed,
                       .fault = fault_for(name),
                       .orders = orders_of(settings_.shake, c.place, settings_.seed)};
    CaseRecord record{c.name, c.op, c.row, c.types, {}, "", Status::kPass};
    const size_t messages = device_->validation_messages().size();
    try {
      record.result = c.run(*device_, options);
    } catch (const std::bad_alloc&) {
      record.result = {Status::kResourceError, "out of CPU memory"};
    } catch (const std::exception& error) {
      record.result = {Status::kInternalError, error.what()};
    }
    const std::vector<std::string> now = device_->validation_messages();
    if (now.size() > messages) {
      record.result.status = Status::kInternalError;
      record.result.detail = fmt::format("{} validation messages; the first: {}",
                                         now.size() - messages, now[messages]);
    }
    send(to_line(record));
    ++done_;
    // A lost device is not destroyed in order, because drivers hang there.
    if (record.result.status == Status::kDeviceLost) std::_Exit(kSuccess);
  }

 private:
  Fault fault_for(const std::string& name) const {
    for (const Injection& injection : injections_) {
      if (injection.beside_others && done_ == 0) continue;
      if (matches(injection.cases, name)) return injection.fault;
    }
    return Fault::kNone;
  }

  ChildSettings settings_;
  std::unordered_map<std::string, const SuiteCase*> cases_;
  std::vector<Injection> injections_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<BackgroundLoad> load_;  // ends before its device
  size_t done_ = 0;
};

}  // namespace

int run_conform_worker() {
  std::signal(SIGINT, SIG_IGN);  // the parent decides
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the child hangs in a driver
#endif
  std::string line;
  if (!std::getline(std::cin, line)) return kBadInput;
  Worker worker(read_settings(line));
  while (std::getline(std::cin, line)) worker.run(line);
  return kSuccess;
}

}  // namespace mulciber::apps
