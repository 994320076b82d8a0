#include "apps/bench/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/bench/decoder.h"
#include "apps/bench/encoder.h"
#include "apps/bench/grammar.h"
#include "apps/cli/language_model.h"
#include "apps/cli/peaks.h"
#include "models/families/open_model.h"
#include "mulciber/translator.h"
#include "runtime/profiler.h"

namespace mulciber::apps {
namespace {

std::vector<std::string> sentences(const std::string& file) {
  if (file.empty()) {
    return {"A dog runs through the snow.",
            "Two children are playing football in the park.",
            "A woman in a red coat is reading a book on a bench.",
            "An old man is selling vegetables at the market.",
            "A group of people is standing in front of a large building.",
            "A young girl in a blue dress is climbing a ladder.",
            "Three men are working on the roof of a house.",
            "A man with a hat plays the guitar on the street while people walk by."};
  }
  std::ifstream in(file);
  if (!in) throw ModelError(file, "cannot be read", "give a text file with one sentence a line");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print_kernels(Device& device, const Peaks& peaks) {
  fmt::print("{}\n", device.profiler()->table(peaks.bytes_per_second, peaks.flops_per_second));
  fmt::print("device            {} {}\n", device.capabilities().name,
             device.capabilities().driver_info);
}

nlohmann::json kernel_rows(const Profiler& profiler, const Peaks& peaks) {
  nlohmann::json rows = nlohmann::json::array();
  const double all_seconds = profiler.total_us() * 1e-6;
  for (const KernelTotal& total : profiler.totals()) {
    const double floor = std::max(static_cast<double>(total.work.bytes) / peaks.bytes_per_second,
                                  static_cast<double>(total.work.flops) / peaks.flops_per_second);
    const double seconds = total.total_us * 1e-6;
    rows.push_back({{"kernel", total.kernel->id},
                    {"dispatches", total.dispatches},
                    {"seconds", seconds},
                    {"floor_seconds", floor},
                    {"gflops", per_second(total.work.flops, seconds) * 1e-9},
                    {"gbytes_per_second", per_second(total.work.bytes, seconds) * 1e-9},
                    {"ratio", seconds > 0 ? floor / seconds : 0},
                    {"share", seconds / all_seconds}});
  }
  return rows;
}

int bench_model(const ModelBench& options) {
  const std::shared_ptr<const OpenModel> model = open_model(options.model);
  if (model->family().capabilities.has(Capability::kContinueText))
    return options.answer.any() ? bench_grammar(options, *model) : bench_decoder(options, *model);
  if (model->family().capabilities.has(Capability::kEncodeText))
    return bench_encoder(options, *model);
  model->require(Capability::kTranslate);
  const std::vector<std::string> texts = sentences(options.file);
  TranslateOptions settings;
  if (options.beams > 0) settings.beams = options.beams;

  std::shared_ptr<Device> device = open_device(options.common, kTestEveryRow);
  const Peaks peaks = measure_peaks(*device);
  std::vector<double> wall, encode, decode;
  TranslateStatistics statistics;
  {
    Translator translator(device, model);
    translator.translate(texts, settings);  // warms up pipelines and programs, and the compiler
    for (uint32_t i = 0; i < options.repeats; ++i) {
      translator.translate(texts, settings);
      statistics = translator.statistics();
      wall.push_back(statistics.total_seconds);
      encode.push_back(per_second(statistics.source_tokens, statistics.encode_seconds));
      decode.push_back(per_second(statistics.target_tokens, statistics.decode_seconds));
      if (interrupted()) return kInterrupted;
    }
  }

  DeviceOptions profiled = options.common.device_options;
  profiled.profile = true;
  std::shared_ptr<Device> timed = Device::open(profiled);
  Translator translator(timed, model);
  translator.translate(texts, settings);
  timed->profiler()->clear();
  translator.translate(texts, settings);
  const double kernel_seconds = timed->profiler()->total_us() * 1e-6;
  const double ratio = kernel_seconds > 0 ? median(wall) / kernel_seconds : 0;

  if (options.common.json) {
    fmt::print("{}\n", nlohmann::json{{"device", timed->capabilities().name},
                                      {"driver", timed->capabilities().driver_info},
                                      {"sentences", texts.size()},
                                      {"source_tokens", statistics.source_tokens},
                                      {"target_tokens", statistics.target_tokens},
                                      {"encode_tps", median(encode)},
                                      {"decode_tps", median(decode)},
                                      {"steps", statistics.decoder_steps},
                                      {"wall_seconds", median(wall)},
                                      {"kernel_seconds", kernel_seconds},
                                      {"wall_over_kernels", ratio},
                                      {"kernels", kernel_rows(*timed->profiler(), peaks)}}
                           .dump(2));
    return kSuccess;
  }
  print_kernels(*timed, peaks);
  fmt::print("encode            {:.0f} tokens/s\n", median(encode));
  fmt::print("decode            {:.0f} tokens/s ({} steps for {} sentences)\n", median(decode),
             statistics.decoder_steps, texts.size());
  fmt::print("sum of kernels    {:.1f} ms\n", 1000 * kernel_seconds);
  fmt::print("translate, wall   {:.1f} ms (median of {}), {:.2f} x the kernels\n",
             1000 * median(wall), options.repeats, ratio);
  return finish(*device, options.common, kSuccess);
}

}  // namespace mulciber::apps
