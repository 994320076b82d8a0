// `mulciber inspect`: the contents of a checkpoint, or its faults.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/cli/command.h"
#include "models/loading/inspect.h"
#include "models/loading/open_files.h"

namespace mulciber::apps {

void add_inspect(Command& app, int& code) {
  struct Options {
    std::string path;
    bool json = false;
    bool tensors = false;
  };
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("inspect", "What a checkpoint holds, or what is wrong with it");
  command.add_option("PATH", options->path, "Hugging Face folder or .safetensors file").required();
  command.add_flag("--json", options->json, "machine-readable output");
  command.add_flag("--tensors", options->tensors, "a line per tensor as well");
  command.footer(
      "Exit code 2 and one line when the checkpoint cannot be used. No device is needed.\n\n"
      "Example: mulciber inspect assets/en-de");
  command.callback([options, &code] {
    const Json report = inspect(open_files(options->path));
    fmt::print("{}\n", options->json ? report.dump(2) : inspection_text(report, options->tensors));
    code = kSuccess;
  });
}

}  // namespace mulciber::apps
