// `mulciber transcribe`: turns sound into text.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "apps/cli/interrupt_watch.h"
#include "apps/cli/lines.h"
#include "apps/cli/progress.h"
#include "apps/cli/standard_error.h"
#include "apps/cli/subtitles.h"
#include "apps/transcribe/attention_page.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "mulciber/transcriber.h"

namespace mulciber::apps {
namespace {

struct TranscribeArguments {
  CommonOptions common;
  std::string model, file;
  TranscribeOptions options;
  std::optional<uint32_t> beams;
  std::optional<float> temperature;
  std::string attention;
  bool half_weights = false, half_activations = false, stats = false;
  bool srt = false, vtt = false, no_timestamps = false, no_follow = false;
};

/// Reads 16-bit samples from standard input as they come.
class SampleStream {
 public:
  /// Appends the available ones of the next `count` samples; false: the stream has ended.
  bool read(std::vector<float>& samples, size_t count) {
    bytes_.resize(2 * count);
    const size_t read = std::fread(bytes_.data(), 1, bytes_.size(), stdin);
    for (size_t i = 0; i + 1 < read; i += 2)
      samples.push_back(static_cast<float>(static_cast<int16_t>(bytes_[i] | bytes_[i + 1] << 8)) /
                        32768);
    return read == bytes_.size();
  }

 private:
  std::vector<unsigned char> bytes_;
};

class TranscribeRun {
 public:
  explicit TranscribeRun(TranscribeArguments& arguments)
      : arguments_(arguments),
        options_(arguments.options),
        device_(open_device(arguments.common)),
        transcriber_(device_, arguments.model,
                     {.half_weights = arguments.half_weights,
                      .half_activations = arguments.half_activations}),
        output_("") {
    if (arguments.beams) options_.beams = *arguments.beams;
    options_.timestamps = !arguments.no_timestamps;
    options_.follow_previous = !arguments.no_follow;
    if (arguments.temperature) options_.temperatures = {double{*arguments.temperature}};
    options_.cancel = &cancel_;
  }

  int run() {
    if (!arguments_.attention.empty() && arguments_.file == "-")
      throw ModelError("--attention", "is about a file, and a stream is computed anew every second",
                       "record it first");
    const InterruptWatch watch(cancel_);
    if (arguments_.file == "-")
      listen();
    else
      read_file();
    output_.flush();
    if (arguments_.stats) report();
    return finish(*device_, arguments_.common, cancel_ ? kInterrupted : kSuccess);
  }

 private:
  bool plain() const { return !arguments_.common.json && !arguments_.srt && !arguments_.vtt; }

  void read_file() {
    Progress progress("transcribe", 1000);
    options_.progress = [&](double done, double total) {
      progress.update(static_cast<size_t>(std::lround(1000 * std::min(done / total, 1.0))));
    };
    if (plain())
      options_.on_segment = [&](const TranscriptSegment& segment) {
        progress.finish();
        output_.line(segment.text);
      };
    SpokenAttentionPage page(arguments_.model, arguments_.file);
    if (!arguments_.attention.empty())
      options_.on_attention = [&](const SpokenAttention& attention) { page.add(attention); };
    const Transcript transcript = transcriber_.transcribe_file(arguments_.file, options_);
    progress.finish();
    print(transcript);
    if (transcript.missing_seconds > 0)
      tell("mulciber: {}: is cut short: its header says {:.1f} s, and {:.1f} s are there\n",
           printable(arguments_.file), transcript.seconds + transcript.missing_seconds,
           transcript.seconds);
    if (arguments_.attention.empty()) return;
    if (page.empty())
      tell("mulciber: no text was heard, so that {} is not written\n",
           printable(arguments_.attention));
    else
      page.write(arguments_.attention);
  }

  void print(const Transcript& transcript) {
    if (arguments_.common.json) output_.line(json_text(transcript));
    if (arguments_.srt) print_file(srt_text(transcript.segments));
    if (arguments_.vtt) print_file(vtt_text(transcript.segments));
  }

  void print_file(std::string text) {
    if (text.empty()) return;
    text.pop_back();  // the line feed that line() adds
    output_.line(text);
  }

  /// Transcribes a stream: every second the text so far is computed anew. Text of sound that the
  /// model has heard completely is printed, and this sound is dropped.
  void listen() {
    SampleStream input;
    std::vector<float> samples;
    Transcript all;
    const double rate = transcriber_.sample_rate();
    double begin = 0;  // seconds before the samples
    for (bool more = true; more && !cancel_;) {
      more = input.read(samples, transcriber_.sample_rate());
      const Transcript heard = transcriber_.transcribe(samples, options_);
      const bool full = static_cast<double>(samples.size()) / rate >= transcriber_.window_seconds();
      // The last segment of a full window may be cut off, so it is heard again.
      const size_t segments = heard.segments.size();
      const size_t taken = !more ? segments : full ? std::max<size_t>(segments, 2) - 1 : 0;
      for (size_t i = 0; i < std::min(taken, segments); ++i) take(all, heard.segments[i], begin);
      if (more && full) {
        const double end = taken < segments ? heard.segments[taken].start : heard.seconds;
        const auto gone = static_cast<std::ptrdiff_t>(end * rate);
        samples.erase(samples.begin(), samples.begin() + gone);
        begin += static_cast<double>(gone) / rate;
      }
      partial(more ? heard : Transcript{}, std::min(taken, segments));
      all.language = heard.language;
      all.seconds = begin + static_cast<double>(samples.size()) / rate;
    }
    print(all);
  }

  void take(Transcript& all, TranscriptSegment segment, double begin) {
    segment.start += begin;
    segment.end += begin;
    for (TranscribedWord& word : segment.words) word.start += begin, word.end += begin;
    all.text += (all.text.empty() ? "" : " ") + segment.text;
    if (plain()) {
      output_.line(segment.text);
      output_.flush();
    }
    all.segments.push_back(std::move(segment));
  }

  /// Prints text that may still change on standard error.
  static void partial(const Transcript& heard, size_t taken) {
    std::string text;
    for (size_t i = taken; i < heard.segments.size(); ++i)
      text += (text.empty() ? "" : " ") + heard.segments[i].text;
    if (!text.empty()) tell("... {}\n", text);
  }

  void report() const {
    const TranscribeStatistics& is = transcriber_.statistics();
    tell(
        "sound       {:.2f} s in {} windows, {} tokens, {} fallbacks\n"
        "speed       {:.2f} s of sound a second\n"
        "seconds     {:.3f} load, {:.3f} features, {:.3f} encoder, {:.3f} decoder, {:.3f} "
        "words\n"
        "memory      {:.1f} MiB weights, {:.1f} MiB at most\n",
        is.sound_seconds, is.windows, is.tokens, is.fallbacks,
        is.total_seconds > 0 ? is.sound_seconds / is.total_seconds : 0.0, is.load_seconds,
        is.feature_seconds, is.encode_seconds, is.decode_seconds, is.word_seconds,
        static_cast<double>(is.weight_bytes) / 1048576,
        static_cast<double>(is.peak_device_bytes) / 1048576);
  }

  const TranscribeArguments& arguments_;
  TranscribeOptions options_;
  std::atomic<bool> cancel_{false};
  std::shared_ptr<Device> device_;
  Transcriber transcriber_;
  Output output_;
};

}  // namespace

void add_transcribe(Command& app, int& code) {
  const auto options = std::make_shared<TranscribeArguments>();
  Command command = app.add_subcommand("transcribe", "Turn speech into text");
  command.add_option("-m,--model", options->model, "Hugging Face folder of a Whisper model")
      .required()
      .type_name("DIR");
  command
      .add_option(
          "FILE", options->file,
          "WAV, FLAC, Ogg or MP3; -: samples of 16 bits at the model's rate, one channel, on "
          "standard input")
      .required();
  command
      .add_option("--language", options->options.language,
                  "of the speech, such as en (default: detected)")
      .type_name("CODE");
  command.add_flag("--translate", options->options.translate, "write it in English");
  command.add_option("--beams", options->beams, "1: greedy search (default: 5)").range(1, 32);
  command
      .add_option(
          "--temperature", options->temperature,
          "only this one: 0 searches, more draws (default: 0, then 0.2 to 1 while a text is "
          "unlikely or repeats itself)")
      .range(0.0, 10.0);
  command.add_option("--seed", options->options.seed,
                     "where chance begins: the same seed gives the same text");
  command
      .add_option("--attention", options->attention,
                  "write a page here that shows which sound each token came from")
      .type_name("FILE");
  command.add_flag("--words", options->options.word_times, "start and end of words, with --json");
  command.add_option("--prompt", options->options.prompt, "what was said before").type_name("TEXT");
  command.add_flag("--no-timestamps", options->no_timestamps, "a window is one segment");
  command.add_flag("--no-follow", options->no_follow, "do not tell a window the text before it");
  const Option srt = command.add_flag("--srt", options->srt, "print SubRip subtitles");
  command.add_flag("--vtt", options->vtt, "print WebVTT subtitles").excludes(srt);
  command.add_flag("--half", options->half_weights,
                   "keep matrices in 16 bits on the device even where the file has 32");
  command.add_flag("--half-activations", options->half_activations, "keep activations in 16 bits");
  command.add_flag("--stats", options->stats, "speed and memory, on standard error");
  add_common_options(command, options->common);
  command.footer(
      "Prints a segment a line as it is found; on a stream also, on standard error, what may still "
      "change.\n\n"
      "Example: mulciber transcribe -m models/whisper-tiny.en talk.mp3 --srt >talk.srt");
  command.callback([options, &code] { code = TranscribeRun(*options).run(); });
}

}  // namespace mulciber::apps
