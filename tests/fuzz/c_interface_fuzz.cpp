// Calls of the C interface: each byte of the input chooses a call, the next ones its arguments.
// Handles are valid or NULL, numbers, sizes, enumerators and orders of calls are whatever comes.
// What C itself cannot survive is left out: pointers into nothing, handles of another type, ranges
// beyond the application's memory. A call must end with a status that has a message, with an
// object where it is MULCIBER_OK and NULL otherwise. Exceptions that are not Mulciber's, and
// failures of Vulkan calls, are findings. MULCIBER_SOURCE names the repository;
// MULCIBER_FUZZ_CALLS=1 tells the calls of an input that is run again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "mulciber/device.h"
#include "tests/fuzz/c_array_calls.h"
#include "tests/fuzz/c_completion_calls.h"
#include "tests/fuzz/c_loading_calls.h"
#include "tests/fuzz/c_task_calls.h"
#include "tests/fuzz/c_text_calls.h"

using namespace mulciber::fuzz;

namespace {

struct Call {
  const char* name;
  void (*make)(Run& run);
};

/// tests/fuzz/seeds.py finds calls by these names.
constexpr Call kCalls[] = {
    {"begin_translation", TaskCalls::begin_translation},
    {"begin_generation", TaskCalls::begin_generation},
    {"begin_embedding", TaskCalls::begin_embedding},
    {"begin_image", TaskCalls::begin_image},
    {"begin_maps", TaskCalls::begin_maps},
    {"restart_maps", TaskCalls::restart_maps},
    {"record", TaskCalls::record},
    {"completed", TaskCalls::completed},
    {"step", TaskCalls::step},
    {"wait", TaskCalls::wait},
    {"finish", TaskCalls::finish},
    {"cancel", TaskCalls::cancel},
    {"read", TaskCalls::read},
    {"count", TaskCalls::count},
    {"copy", TaskCalls::copy},
    {"embed", LoadingCalls::embed},
    {"make_grammar", LoadingCalls::make_grammar},
    {"use_adapters", LoadingCalls::use_adapters},
    {"snapshot", LoadingCalls::snapshot},
    {"converse", LoadingCalls::converse},
    {"load", LoadingCalls::load},
    {"step_load", LoadingCalls::step_load},
    {"finish_load", LoadingCalls::finish_load},
    {"open_files", LoadingCalls::open_files},
    {"open", LoadingCalls::open},
    {"adopt", LoadingCalls::adopt},
    {"ask", LoadingCalls::ask},
    {"warm", LoadingCalls::warm},
    {"prewarm", LoadingCalls::prewarm},
    {"trim", LoadingCalls::trim},
    {"destroy", LoadingCalls::destroy},
    {"generate", CompletionCalls::generate},
    {"generate_all", CompletionCalls::generate_all},
    {"tokens", CompletionCalls::tokens},
    {"score", CompletionCalls::score},
    {"report", CompletionCalls::report},
    {"batch", CompletionCalls::batch},
    {"embed_images", ArrayCalls::embed_images},
    {"attend", ArrayCalls::attend},
    {"describe", ArrayCalls::describe},
    {"wait_for", TaskCalls::wait_for},
    {"run", TaskCalls::run},
    {"translate", TextCalls::translate},
    {"score_translations", TextCalls::score},
    {"text_tokens", TextCalls::tokens},
    {"batch_translate", TextCalls::batch},
    {"embed_texts", TextCalls::embed_texts},
    {"describe_texts", TextCalls::describe},
    {"trim_encoder", TextCalls::trim_encoder},
};

Loaded& loaded() {
  static auto* const once = new Loaded;
  return *once;
}

}  // namespace

namespace mulciber {

/// The room of the self-test is not linked, because no input calls it.
SelfTest self_test(const DeviceOptions&, double) { std::abort(); }

}  // namespace mulciber

// Drivers keep memory for good, which counts as leaked once their library is unloaded.
extern "C" __attribute__((visibility("default"))) int dlclose(void*) { return 0; }

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  loaded();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  constexpr int kMostCalls = 32;  // which take a minute at most
  Run run(loaded(), bytes, size);
  static const bool told = std::getenv("MULCIBER_FUZZ_CALLS") != nullptr;
  for (int i = 0; i < kMostCalls && run.in.left(); ++i) {
    const Call& call = kCalls[run.in.byte() % std::size(kCalls)];
    if (told) std::fprintf(stderr, "%s\n", call.name);
    call.make(run);
  }
  return 0;
}
