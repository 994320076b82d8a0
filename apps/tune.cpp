// `mulciber tune`: measures the rows that could serve a model's products and attention, and stores
// the fastest for this device and driver version.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "apps/cli/language_model.h"
#include "apps/cli/progress.h"
#include "conformance/tune.h"
#include "models/families/open_model.h"
#include "mulciber/translator.h"
#include "runtime/op.h"

namespace mulciber::apps {
namespace {

struct TuneArguments {
  CommonOptions common;
  LanguageModelOptions model;
  double seconds = 30;
  bool again = false, forget = false;
};

/// The problems that a translator asks selection for, found by translating.
std::shared_ptr<AskedProblems> asked_by_translator(const std::shared_ptr<Device>& device,
                                                   std::shared_ptr<const OpenModel> model) {
  auto asked = std::make_shared<AskedProblems>();
  Translator translator(device, std::move(model));
  device->watch_selection(asked);
  translator.translate({"A dog runs through the snow."}, {});
  translator.translate(std::vector<std::string>(8, "An old man is selling vegetables."), {});
  device->watch_selection(nullptr);
  return asked;
}

nlohmann::json to_json(const conformance::Tuned& tuned) {
  nlohmann::json candidates = nlohmann::json::array();  // in the table's order
  for (const auto& [row, time] : tuned.milliseconds)
    candidates.push_back({{"row", row->id}, {"milliseconds", time}});
  nlohmann::json refused = nlohmann::json::object();  // rows that the driver refused
  for (const auto& [row, reason] : tuned.refused) refused[row->id] = reason;
  return {{"op", name_of(tuned.problem.op)},
          {"activation", name_of(tuned.problem.types.activation)},
          {"weight", name_of(tuned.problem.types.weight)},
          {"extents", tuned.problem.extents},
          {"candidates", candidates},
          {"refused", refused},
          {"row", tuned.chosen->id}};
}

void print(const conformance::Tuned& tuned) {
  fmt::print("{} {} x {}, {}\n", name_of(tuned.problem.op), name_of(tuned.problem.types.activation),
             name_of(tuned.problem.types.weight), fmt::join(tuned.problem.extents, ","));
  for (const auto& [row, time] : tuned.milliseconds)
    fmt::print("  {} {:<44} {:>9.4f} ms\n", row == tuned.chosen ? '*' : ' ', row->id, time);
  for (const auto& [row, reason] : tuned.refused) fmt::print("  ! {:<44} {}\n", row->id, reason);
}

nlohmann::json to_json(const conformance::Unmeasured& failed) {
  return {{"op", name_of(failed.problem.op)},
          {"activation", name_of(failed.problem.types.activation)},
          {"weight", name_of(failed.problem.types.weight)},
          {"extents", failed.problem.extents},
          {"row", failed.row ? nlohmann::json(failed.row->id) : nlohmann::json()},
          {"reason", failed.reason}};
}

int forget_choices(const TuneArguments& options) {
  const std::unique_ptr<Device> device = Device::open(options.common.device_options);
  Choices choices(device->capabilities(), options.common.device_options.cache_folder);
  const size_t count = choices.all().size();
  choices.forget();
  if (options.common.json)
    fmt::print("{}\n", nlohmann::json{{"forgotten", count}}.dump(2));
  else
    fmt::print("{} choices forgotten\n", count);
  return finish(*device, options.common, kSuccess);
}

int run_tune(const TuneArguments& options) {
  if (options.forget) return forget_choices(options);
  if (options.model.model.empty())
    throw ModelError("tune", "no model was named", "give one with -m, or --forget");
  const std::shared_ptr<const OpenModel> model = open_model(options.model.model);
  const bool translates = model->family().capabilities.has(Capability::kTranslate);
  if (!translates) model->require(Capability::kContinueText);
  const std::shared_ptr<Device> device = open_device(options.common, kTestEveryRow);
  const std::shared_ptr<AskedProblems> asked = translates
                                                   ? asked_by_translator(device, model)
                                                   : asked_problems(*device, options.model, *model);
  conformance::TuneOptions tuning{
      .seconds = options.seconds, .again = options.again, .cancelled = interrupted};
  Progress progress("measuring kernels", 0);
  tuning.progress = [&](size_t done, size_t) { progress.update(done); };
  const conformance::TuneReport report =
      conformance::tune(options.common.device_options, *asked, tuning);
  progress.finish();
  if (options.common.json) {
    nlohmann::json problems = nlohmann::json::array(), failed = nlohmann::json::array();
    for (const conformance::Tuned& tuned : report.tuned) problems.push_back(to_json(tuned));
    for (const conformance::Unmeasured& one : report.failed) failed.push_back(to_json(one));
    fmt::print("{}\n", nlohmann::json{{"device", device->capabilities().name},
                                      {"driver", device->capabilities().driver_info},
                                      {"problems", problems},
                                      {"failed", failed},
                                      {"known", report.known},
                                      {"alone", report.alone},
                                      {"left", report.left},
                                      {"kept", report.kept},
                                      {"seconds", report.seconds}}
                           .dump(2));
  } else {
    for (const conformance::Tuned& tuned : report.tuned) print(tuned);
    if (!report.failed.empty()) fmt::print("{}\n", describe(report.failed));
    fmt::print(
        "{} problems measured in {:.1f} s; {} were known, {} have one row, {} were left for want "
        "of time or memory{}\n",
        report.tuned.size(), report.seconds, report.known, report.alone, report.left,
        report.kept || report.tuned.empty()
            ? ""
            : "; nothing is kept: name a folder that can be written to by MULCIBER_CACHE");
  }
  return finish(*device, options.common, interrupted() ? kInterrupted : kSuccess);
}

}  // namespace

void add_tune(Command& app, int& code) {
  auto options = std::make_shared<TuneArguments>();
  Command command = app.add_subcommand(
      "tune", "Time the kernels that could serve a model, and keep the quickest for this driver");
  const Option model =
      command.add_option("-m,--model", options->model.model, "GGUF file, or Hugging Face folder")
          .type_name("FILE|DIR");
  add_loading_options(command, options->model);
  command
      .add_option("--seconds", options->seconds,
                  "stop after so many; what is left is measured next time")
      .positive()
      .shows_default();
  command.add_flag("--again", options->again, "measure what was measured before, too");
  command
      .add_flag("--forget", options->forget,
                "forget what was measured on this device and driver, whatever the model: the "
                "table's order serves")
      .excludes(model);
  add_common_options(command, options->common);
  command.remove_option("--profile");  // work is timed on a device of its own
  command.footer(
      "Choices are kept beside the verdicts of the self-test (MULCIBER_CACHE); `mulciber devices "
      "-v` lists them. On\nhardware a language model is tuned for two seconds when it is first "
      "loaded; MULCIBER_TUNE=0 turns that off.\n\nExample:\n  mulciber tune -m model.gguf");
  command.callback([options, &code] { code = run_tune(*options); });
}

}  // namespace mulciber::apps
