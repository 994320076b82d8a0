// The option --kv of commands that run language models.
#pragma once

#include <CLI/CLI.hpp>

#include "mulciber/text_generator.h"

namespace mulciber::apps {

inline void add_key_value_option(CLI::App& command, KeyValueStorage& storage) {
  command
      .add_option("--kv", storage,
                  "storage of keys and values of the context: f16, f32 or q8_0 (default: f16)")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, KeyValueStorage>{{"f16", KeyValueStorage::kF16},
                                                 {"f32", KeyValueStorage::kF32},
                                                 {"q8_0", KeyValueStorage::kQ8_0}}))
      ->type_name("TYPE");
}

}  // namespace mulciber::apps
