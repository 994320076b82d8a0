#include "apps/bench/decoder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/cli/language_model.h"
#include "apps/cli/peaks.h"
#include "models/generation/language_model.h"
#include "models/generation/sequence_decoding.h"
#include "runtime/profiler.h"

namespace mulciber::apps {
namespace {

struct Measured {
  std::vector<double> prefill, decode;  // tokens per second
  double load_seconds = 0;
  uint64_t weight_bytes = 0, step_bytes = 0, peak_bytes = 0;
  size_t dispatches = 0;  // in a step
};

/// A model with room for one run, and the run.
class Bench {
 public:
  Bench(Device& device, const OpenModel& opened, const ModelBench& options)
      : options_(options),
        model_(
            load_model(device, opened,
                       {.activations = options.half_activations ? DataType::kF16 : DataType::kF32,
                        .fast_activations = options.fast_activations,
                        .cache = storage_type(options.key_values),
                        .context = options.prompt + options.tokens + 1,
                        .sequences = 1})),
        slots_(device, network(),
               conversation_slots(device.capabilities(), network(), 1, network().context),
               std::nullopt) {
    // The time does not depend on the ids, so any will do.
    for (uint32_t i = 0; i < std::max(options.prompt, 1u); ++i)
      prompt_.push_back((i * 7919 + 13) % network().vocabulary);
  }

  DecodedSequence run() {
    DecodedSequence found = decode_sequence(slots_, 0, {.prompt = prompt_, .reuses = false},
                                            {.max_new_tokens = options_.tokens + 1, .stops = {}});
    slots_.end(0, false);
    return found;
  }
  const Model& model() const { return *model_; }
  const Program& step() { return slots_.step_program(); }

 private:
  const DecoderNetwork& network() const { return model_->continues_text()->network(); }

  const ModelBench& options_;
  std::unique_ptr<Model> model_;
  SequenceSlots slots_;
  std::vector<uint32_t> prompt_;
};

}  // namespace

int bench_decoder(const ModelBench& options, const OpenModel& opened) {
  Measured measured;
  std::shared_ptr<Device> device =
      open_tuned_device(options.common,
                        {.context = options.prompt + options.tokens + 1,
                         .half_activations = options.half_activations,
                         .key_values = options.key_values},
                        opened, kTestEveryRow);
  const Peaks peaks = measure_peaks(*device);
  {
    Bench bench(*device, opened, options);
    bench.run();  // warms up pipelines, programs and the driver's compiler
    for (uint32_t i = 0; i < options.repeats; ++i) {
      const DecodedSequence result = bench.run();
      measured.prefill.push_back(per_second(std::max(options.prompt, 1u), result.prefill_seconds));
      measured.decode.push_back(per_second(result.steps, result.decode_seconds));
      if (interrupted()) return kInterrupted;
    }
    measured.weight_bytes = bench.model().weight_bytes();
    measured.step_bytes = bench.step().work().bytes;
    measured.dispatches = bench.step().nodes().size();
    measured.peak_bytes = device->memory().peak();
  }
  const double prefill = median(measured.prefill), decode = median(measured.decode);
  const double share = decode * static_cast<double>(measured.step_bytes) / peaks.bytes_per_second;

  DeviceOptions profiled = options.common.device_options;
  profiled.profile = true;
  std::shared_ptr<Device> timed = Device::open(profiled);
  Bench bench(*timed, opened, options);
  bench.run();
  timed->profiler()->clear();
  bench.run();

  if (options.common.json) {
    fmt::print("{}\n", nlohmann::json{{"device", device->capabilities().name},
                                      {"driver", device->capabilities().driver_info},
                                      {"family", bench.model().family()},
                                      {"prompt", options.prompt},
                                      {"new", options.tokens},
                                      {"prefill_tps", prefill},
                                      {"decode_tps", decode},
                                      {"decode_floor_share", share},
                                      {"step_bytes", measured.step_bytes},
                                      {"step_dispatches", measured.dispatches},
                                      {"weight_bytes", measured.weight_bytes},
                                      {"peak_device_bytes", measured.peak_bytes},
                                      {"kernels", kernel_rows(*timed->profiler(), peaks)}}
                           .dump(2));
    return kSuccess;
  }
  print_kernels(*timed, peaks);
  fmt::print("prefill           {:.1f} tokens/s ({} tokens)\n", prefill, options.prompt);
  fmt::print(
      "decode            {:.1f} tokens/s ({} tokens, {} dispatches a step), {:.0f} % of the "
      "bandwidth floor\n",
      decode, options.tokens, measured.dispatches, 100 * share);
  return finish(*device, options.common, kSuccess);
}

}  // namespace mulciber::apps
