// --lora: adapters with which a model is loaded.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/options.h"
#include "mulciber/load_options.h"

namespace mulciber::apps {

struct AdapterOptions {
  std::vector<std::string> lora;  // PATH or PATH=SCALE
  bool merge = false;
};
/// --lora and --merge-lora.
void add_adapter_options(Command& command, AdapterOptions& options);
/// Adds --lora alone, for models into which adapters are always merged.
void add_merged_adapter_option(Command& command, AdapterOptions& options);

std::vector<AdapterFile> adapter_files(const AdapterOptions& options);

}  // namespace mulciber::apps
