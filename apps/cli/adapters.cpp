#include "apps/cli/adapters.h"

#include <cstdlib>

namespace mulciber::apps {

void add_merged_adapter_option(Command& command, AdapterOptions& options) {
  command
      .add_option("--lora", options.lora,
                  "LoRA adapter that is added, with its scale (default: 1): a folder of PEFT's, or "
                  "a GGUF file; may be given several times")
      .one_value_each()
      .type_name("PATH[=SCALE]");
}

void add_adapter_options(Command& command, AdapterOptions& options) {
  add_merged_adapter_option(command, options);
  command
      .add_flag("--merge-lora", options.merge,
                "add adapters to the weights for good: nothing more to compute, but not for "
                "quantized models")
      .needs(command.option("--lora"));
}

std::vector<AdapterFile> adapter_files(const AdapterOptions& options) {
  std::vector<AdapterFile> files;
  for (const std::string& argument : options.lora) {
    AdapterFile file = {.path = argument, .name = {}};
    const size_t equals = argument.rfind('=');
    if (equals != argument.npos && equals + 1 < argument.size()) {
      const char* begin = argument.c_str() + equals + 1;
      char* end = nullptr;
      const float scale = std::strtof(begin, &end);
      if (*end == '\0') {
        file.scale = scale;
        file.path = argument.substr(0, equals);
      }
    }
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace mulciber::apps
