// The command: parses, then calls one file per subcommand.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "apps/cli/command.h"
#include "apps/cli/standard_error.h"
#include "conformance/records/fingerprint.h"
#include "mulciber/error.h"
#include "mulciber/version.h"

int main(int argc, char** argv) {
  using namespace mulciber;
  using namespace mulciber::apps;
  const ProgramDescription program = {
      .description = "Transformers on any Vulkan device.",
      .name = "mulciber",
      .version =
          [] {
            return fmt::format("{}\nshaders: {}", MULCIBER_VERSION,
                               conformance::describe_shaders());
          },
      .footer =
          "Exit codes: 0 success, 1 a comparison or a case failed, 2 bad input, 3 nothing to "
          "compare, 4 no device or a device failure, 130 interrupted."};
  int code = kSuccess;
  CommandLine line(program);
  Command& app = line.commands();
  add_devices(app, code);
  add_translate(app, code);
  add_generate(app, code);
  add_chat(app, code);
  add_serve(app, code);
  add_perplexity(app, code);
  add_score(app, code);
  add_transcribe(app, code);
  add_embed(app, code);
  add_classify(app, code);
  add_answer(app, code);
  add_match(app, code);
  add_read(app, code);
  add_tokenize(app, code);
  add_bench(app, code);
  add_tune(app, code);
  add_kernels(app, code);
  add_verify(app, code);
  add_inspect(app, code);
  add_conform(app, code);
  add_heads(app, code);
  add_pull(app, code);

  try {
    if (const std::optional<bool> understood = line.parse(argc, argv))
      return *understood ? kSuccess : kBadInput;
    flush_output();
    return code;
  } catch (const DeviceError& error) {
    tell("mulciber: {}\n", message_of(error, line));
    return kDeviceFailed;
  } catch (const KernelError& error) {  // no kernel can run, or the driver refused
    tell("mulciber: {}\n", error.what());
    return kDeviceFailed;
  } catch (const Error& error) {
    tell("mulciber: {}\n", message_of(error, line));
    return kBadInput;
  } catch (const std::bad_alloc&) {
    tell("mulciber: out of memory\n");
    return kDeviceFailed;
  } catch (const std::exception& error) {
    // fmt throws when standard output cannot take a long listing.
    tell("mulciber: {}\n", std::ferror(stdout)
                               ? "standard output: cannot be written; make room, or print elsewhere"
                               : error.what());
    return kBadInput;
  }
}
