// Chat templates: reading and rendering, with limits that keep a case short.
#include "tests/fuzz/fuzz.h"
#include "text/jinja/template.h"

using namespace mulciber;
using jinja::Value;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const Value messages = jinja::from_json(
      R"([{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Gr\u00fc\u00dfe \ud83d\udc4b"},
          {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1.5}}}]}])",
      "messages");
  fuzz::accepts([&] {
    const jinja::Template chat(fuzz::text(bytes, size), "template");
    const std::tm now{};
    const jinja::Limits limits{.steps = 100'000, .bytes = std::size_t{8} << 20};
    for (const bool with_tools : {false, true})
      fuzz::accepts([&] {
        chat.render({{"messages", messages},
                     {"tools", with_tools ? messages : Value::none()},
                     {"bos_token", Value::string("<s>")},
                     {"add_generation_prompt", Value::boolean(true)}},
                    now, limits);
      });
  });
  return 0;
}
