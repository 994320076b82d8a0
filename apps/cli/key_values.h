// The option --kv of commands that run language models.
#pragma once

#include "apps/cli/options.h"
#include "mulciber/text_generator.h"

namespace mulciber::apps {

inline void add_key_value_option(Command& command, KeyValueStorage& storage) {
  const auto number = [](KeyValueStorage s) { return static_cast<int>(s); };
  command
      .add_choice(
          "--kv",
          {{"f16", number(KeyValueStorage::kF16)},
           {"f32", number(KeyValueStorage::kF32)},
           {"q8_0", number(KeyValueStorage::kQ8_0)}},
          [&storage](int chosen) { storage = static_cast<KeyValueStorage>(chosen); },
          "storage of keys and values of the context: f16, f32 or q8_0 (default: f16)")
      .type_name("TYPE");
}

}  // namespace mulciber::apps
