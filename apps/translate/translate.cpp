// `mulciber translate`: translates text, with beam search, attention maps and statistics.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/attention/options.h"
#include "apps/cli/adapters.h"
#include "apps/cli/command.h"
#include "apps/cli/lines.h"
#include "apps/cli/progress.h"
#include "apps/cli/standard_error.h"
#include "apps/translate/results.h"
#include "apps/translate/statistics.h"
#include "checkpoints/json.h"
#include "mulciber/translator.h"

namespace mulciber::apps {
namespace {

struct TranslateArguments {
  CommonOptions common;
  std::string model;
  std::vector<std::string> text;
  std::string file;
  std::string output;
  std::string source_language, target_language;
  MapOptions maps;
  uint32_t beams = 0;
  uint32_t n_best = 1;
  uint32_t max_tokens = 0;
  uint32_t chunk = 512;
  double length_penalty = NAN;
  bool half_weights = false;
  AdapterOptions adapters;
  bool stats = false;
};

// Masks a head by its name: "decoder.3.1" or "cross.0.2", kind, layer, head.
void mask_head(HeadMasks& masks, const std::string& word, const ModelExtents& shape) {
  const HeadName name = head_name(word, {"encoder", "decoder", "cross"});
  const bool encoder = name.kind == "encoder", cross = name.kind == "cross";
  std::vector<float>& mask = encoder ? masks.encoder : cross ? masks.cross : masks.decoder;
  const uint32_t layers = encoder ? shape.encoder_layers
                          : cross ? shape.cross_layers
                                  : shape.decoder_layers;
  const uint32_t heads = encoder ? shape.encoder_heads
                         : cross ? shape.cross_heads
                                 : shape.decoder_heads;
  if (name.layer >= layers || name.head >= heads)
    throw ModelError("--mask-heads",
                     fmt::format("'{}' names a head that is not there: {} layers of {} heads", word,
                                 layers, heads),
                     "");
  if (mask.empty()) mask.assign(size_t{layers} * heads, 1.0f);
  mask[size_t{name.layer} * heads + name.head] = 0;
}

class Run {
 public:
  explicit Run(const TranslateArguments& options)
      : options_(options),
        device_(open_device(options.common)),
        translator_(
            device_, options.model,
            {.half_weights = options.half_weights, .adapters = adapter_files(options.adapters)}),
        output_(options.output) {
    if (options.beams > 0) settings_.beams = options.beams;
    if (options.max_tokens > 0) settings_.max_new_tokens = options.max_tokens;
    if (!std::isnan(options.length_penalty))
      settings_.length_penalty = static_cast<float>(options.length_penalty);
    settings_.n_best = options.n_best;
    settings_.source_language = options.source_language;
    settings_.target_language = options.target_language;
    settings_.attention = !options.maps.file.empty();
    settings_.cancel = &cancel_;
    for (const std::string& word : options.maps.mask_heads)
      mask_head(settings_.head_masks, word, translator_.extents());
    if (options.common.verbose) {
      const TranslateStatistics& s = translator_.statistics();
      tell("weights: {:.1f} MiB on the device; predicted in all: {:.1f} MiB\n",
           static_cast<double>(s.weight_bytes) / 1048576,
           static_cast<double>(s.predicted_device_bytes) / 1048576);
    }
  }

  int run() {
    size_t expected = 0;
    std::unique_ptr<std::istream> opened;
    std::unique_ptr<LineReader> reader;
    std::deque<std::string> given(options_.text.begin(), options_.text.end());
    if (given.empty()) {
      if (!options_.file.empty() && options_.file != "-") {
        opened = std::make_unique<std::ifstream>(options_.file, std::ios::binary);
        if (!*opened)
          throw ModelError(options_.file, "cannot be read",
                           "give a text file with one sentence a line");
        std::string line;
        while (std::getline(*opened, line)) ++expected;
        opened->clear();
        opened->seekg(0);
        reader = std::make_unique<LineReader>(*opened, options_.file);
      } else {
        reader = std::make_unique<LineReader>(std::cin, "standard input");
      }
    } else {
      expected = given.size();
    }
    Progress progress("translate", expected);
    // A user who types wants each line answered at once.
    const size_t chunk = reader && !opened && isatty(STDIN_FILENO) ? 1 : options_.chunk;
    for (bool more = true; more && !cancel_;) {
      std::vector<std::string> lines;
      std::string line;
      while (lines.size() < chunk) {
        if (reader) {
          if (!reader->next(line)) break;
          lines.push_back(line);
        } else {
          if (given.empty()) break;
          lines.push_back(std::move(given.front()));
          given.pop_front();
        }
      }
      more = lines.size() == chunk;
      if (!lines.empty()) translate(lines, progress);
    }
    progress.finish();
    report();
    return finish(*device_, options_.common, cancel_ ? kInterrupted : kSuccess);
  }

 private:
  void translate(const std::vector<std::string>& lines, Progress& progress) {
    const size_t before = done_;
    settings_.progress = [&](size_t done, size_t) {
      progress.update(before + done);
      if (interrupted()) cancel_ = true;
    };
    // A watcher thread sees SIGINT between steps too, not only between batches.
    std::atomic<bool> watching{true};
    std::thread watcher([&] {
      while (watching) {
        if (interrupted()) cancel_ = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
    std::vector<Translation> results;
    try {
      results = translator_.translate(lines, settings_);
    } catch (...) {
      watching = false;
      watcher.join();
      throw;
    }
    watching = false;
    watcher.join();
    totals_.add(translator_.statistics());
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].complete) break;  // interrupted: earlier results are kept
      print(lines[i], results[i]);
    }
    output_.flush();
    done_ += lines.size();
  }

  void print(const std::string& source, const Translation& t) {
    if (options_.common.json) {
      output_.line(json_line(translation_json(source, t)));
    } else if (options_.n_best > 1 && !t.alternatives.empty()) {
      for (const Alternative& h : t.alternatives)
        output_.line(fmt::format("{:.4f}\t{}", h.score, h.text));
    } else {
      output_.line(t.text);
    }
    if (t.attention) {
      maps_.push_back(
          to_maps(source, t, options_.model, describe(*device_).name, translator_.start_token()));
    }
  }

  void report() {
    if (!options_.maps.file.empty() && !maps_.empty()) {
      write_maps(options_.maps, maps_);
    }
    if (!options_.stats) return;
    if (options_.common.json) {
      output_.line(nlohmann::json{{"statistics", statistics_json(totals_.sum, *device_)}}.dump());
      output_.flush();
    } else {
      print_statistics(totals_.sum, *device_);
    }
  }

  const TranslateArguments& options_;
  std::shared_ptr<Device> device_;
  Translator translator_;
  Output output_;
  TranslateOptions settings_;
  Totals totals_;
  std::vector<SentenceMaps> maps_;
  std::atomic<bool> cancel_{false};
  size_t done_ = 0;
};

}  // namespace

void add_translate(Command& app, int& code) {
  auto options = std::make_shared<TranslateArguments>();
  Command command =
      app.add_subcommand("translate", "Translate sentences with an encoder-decoder model");
  command
      .add_option("-m,--model", options->model,
                  "Hugging Face folder of a translation model: Marian, M2M-100, NLLB, BART, T5")
      .required()
      .type_name("DIR");
  command.add_option("TEXT", options->text,
                     "sentences; without any, --file or standard input is read line by line");
  command
      .add_option("-f,--file", options->file,
                  "text file, one sentence a line (- is standard input)")
      .type_name("FILE");
  command
      .add_option("-o,--output", options->output,
                  "write translations here instead of standard output")
      .type_name("FILE");
  command
      .add_option("--source", options->source_language,
                  "language of the sentences, as a model of many calls it: en, eng_Latn")
      .type_name("LANGUAGE");
  command
      .add_option("--target", options->target_language,
                  "language to translate into: de, deu_Latn (default: the model's own)")
      .type_name("LANGUAGE");
  command
      .add_option("-b,--beam", options->beams,
                  "beams of the search; 1 is greedy (default: the model's own)")
      .range(1, 32);
  command
      .add_option("--nbest", options->n_best,
                  "hypotheses per sentence, each with its score; at most the beams")
      .range(1, 32);
  command.add_option("--length-penalty", options->length_penalty,
                     "exponent of the length that divides a score");
  command
      .add_option("--max-tokens", options->max_tokens,
                  "most tokens of a translation (default: the model's own)")
      .range(1, 100000);
  add_attention_options(command, options->maps, {"encoder", "decoder", "cross"});
  command
      .add_option("--chunk", options->chunk,
                  "lines read and translated together; results appear chunk by chunk")
      .range(1, 1000000);
  add_merged_adapter_option(command, options->adapters);
  command.add_flag("--half", options->half_weights,
                   "keep matrices in 16 bits on the device even where the file has 32");
  command.add_flag("--stats", options->stats,
                   "tokens per second, time to first token, device and memory, on standard error");
  add_common_options(command, options->common);
  command.footer(
      "Results keep the order of the input. An empty line translates to an empty line. Bytes that "
      "are not\n"
      "UTF-8 count as U+FFFD. A sentence longer than the model's positions is an error, never "
      "cut. T5 and BART read the text as it is, with the words in front that they were trained "
      "with:\n"
      "mulciber translate -m t5-small \"translate English to German: A dog runs.\"\n\n"
      "Example: mulciber translate -m assets/en-de --attention map.html \"A dog runs through the "
      "snow.\"");
  command.callback([options, &code] {
    check_attention_file(options->maps);
    if (!options->text.empty() && !options->file.empty()) {
      throw ModelError("translate", "both sentences and --file were given", "give one of them");
    }
    code = Run(*options).run();
  });
}

}  // namespace mulciber::apps
