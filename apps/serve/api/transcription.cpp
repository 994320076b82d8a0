// /v1/audio/transcriptions (endpoints.h): a sound file in a form, its text out.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/cli/subtitles.h"
#include "apps/serve/api/endpoints.h"
#include "apps/serve/api/model_choice.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

/// A temporary file for one request, because sounds are read by their path.
class UploadedFile {
 public:
  explicit UploadedFile(const std::string& bytes)
      : path_((std::filesystem::temp_directory_path() / "mulciber-sound-XXXXXX").string()) {
    const int file = mkstemp(path_.data());
    if (file < 0) throw ApiError(500, "there is no place for the sound file", "file");
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t written = ::write(file, bytes.data() + done, bytes.size() - done);
      if (written <= 0) break;
      done += static_cast<size_t>(written);
    }
    ::close(file);
    if (done == bytes.size()) return;
    ::unlink(path_.c_str());
    throw ApiError(500, "there is no room for the sound file", "file");
  }
  ~UploadedFile() { ::unlink(path_.c_str()); }
  UploadedFile(const UploadedFile&) = delete;
  UploadedFile& operator=(const UploadedFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct SoundForm {
  std::string model, file, format = "json";
  bool has_file = false;
  TranscribeOptions options;
};

SoundForm read_form(const HttpRequest& request) {
  SoundForm form;
  if (request.form.empty())
    refuse("file", "a form is expected here (multipart/form-data) with the field file");
  for (const FormPart& part : request.form) {
    if (part.name == "file") {
      form.file = part.content;
      form.has_file = true;
    } else if (part.name == "model") {
      form.model = part.content;
    } else if (part.name == "language") {
      form.options.language = part.content;
    } else if (part.name == "prompt") {
      form.options.prompt = part.content;
    } else if (part.name == "response_format") {
      form.format = part.content;
    } else if (part.name == "temperature") {
      double value = -1;
      const char* end = part.content.data() + part.content.size();
      const auto [stop, error] = std::from_chars(part.content.data(), end, value);
      if (error != std::errc() || stop != end || !(value >= 0 && value <= 1))
        refuse("temperature", "temperature must be a number from 0 to 1");
      if (value > 0) form.options.temperatures = {value};
    } else if (part.name == "timestamp_granularities[]") {
      if (part.content == "word")
        form.options.word_times = true;
      else if (part.content != "segment")
        refuse(part.name, "timestamp_granularities must be word or segment");
    } else {
      refuse(printable(part.name),
             "Unrecognized request argument supplied: " + printable(part.name),
             "unknown_parameter");
    }
  }
  if (!form.has_file) refuse("file", "file is missing");
  return form;
}

HttpResponse written(const Transcript& transcript, const std::string& format) {
  if (format == "text")
    return {.type = "text/plain; charset=utf-8", .body = transcript.text + "\n"};
  if (format == "srt")
    return {.type = "text/plain; charset=utf-8", .body = srt_text(transcript.segments)};
  if (format == "vtt")
    return {.type = "text/vtt; charset=utf-8", .body = vtt_text(transcript.segments)};
  if (format == "json") return {.body = json_line({{"text", transcript.text}}) + "\n"};
  Json segments = Json::array(), words = Json::array();
  for (size_t i = 0; i < transcript.segments.size(); ++i) {
    const TranscriptSegment& segment = transcript.segments[i];
    segments.push_back({{"id", i},
                        {"start", segment.start},
                        {"end", segment.end},
                        {"text", segment.text},
                        {"tokens", segment.ids},
                        {"temperature", segment.temperature},
                        {"avg_logprob", segment.log_probability},
                        {"compression_ratio", segment.compression_ratio},
                        {"no_speech_prob", segment.no_speech}});
    for (const TranscribedWord& word : segment.words)
      words.push_back({{"word", word.text}, {"start", word.start}, {"end", word.end}});
  }
  Json object = {{"task", "transcribe"},
                 {"language", transcript.language},
                 {"duration", transcript.seconds},
                 {"text", transcript.text},
                 {"segments", std::move(segments)}};
  if (!words.empty()) object["words"] = std::move(words);
  return {.body = json_line(object) + "\n"};
}

}  // namespace

HttpResponse transcribe_sound(const Service& service, const HttpRequest& request) {
  SoundForm form = read_form(request);
  ServedModel& model = choose_model(service.engine, form.model, Capability::kHear).model;
  bool known = false;
  for (const char* format : {"json", "text", "srt", "vtt", "verbose_json"})
    known |= form.format == format;
  if (!known)
    refuse("response_format", "response_format must be json, text, srt, vtt or verbose_json");
  // Other requests get a step after each token and each window.
  form.options.on_text = [&](const std::string&) { service.engine.go_on(); };
  form.options.progress = [&](double, double) { service.engine.go_on(); };
  const UploadedFile file(form.file);
  Transcript transcript;
  try {
    service.engine.call(
        [&](const std::atomic<bool>& cancel) {
          form.options.cancel = &cancel;
          transcript = model.transcriber->transcribe_file(file.path(), form.options);
        },
        request.gone);
  } catch (const ModelError& error) {
    // The temporary file's name means nothing to the client.
    const bool of_file = error.where() == file.path();
    refuse(of_file ? "file" : "",
           of_file ? "the sound file cannot be read: " + error.problem() : error.what());
  }
  return written(transcript, form.format);
}

}  // namespace mulciber::apps::serve
