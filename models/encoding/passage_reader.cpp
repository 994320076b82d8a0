// Extractive question answering: Rajpurkar et al. 2016, arXiv:1606.05250; unanswerable questions:
// Rajpurkar et al. 2018, arXiv:1806.03822; windows: Devlin et al. 2019, arXiv:1810.04805.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/core/cpu_softmax.h"
#include "models/encoding/encoder_runner.h"
#include "models/encoding/passage_words.h"
#include "mulciber/error.h"
#include "runtime/public_devices.h"

namespace mulciber {
namespace {

/// Tokens [first, first + count) of a passage; position: index of the first in the input.
struct Window {
  size_t first, count, position;
};

/// Divides the passage's tokens into windows of at most `room` that share `overlap` tokens, but at
/// most half of them: otherwise a long question or a short context would make nearly equal windows.
std::vector<Window> windows_of(size_t tokens, size_t room, size_t overlap, size_t position) {
  const size_t step = room - std::min(overlap, room / 2);
  std::vector<Window> windows;
  for (size_t first = 0;; first += step) {
    windows.push_back({first, std::min(room, tokens - first), position});
    if (first + room >= tokens) return windows;
  }
}

struct Span {
  size_t first, last;  // tokens of the passage
  double score;
};

/// Probabilities of the answer's start (side 0) or end (1) over a window's tokens. The last element
/// is that of no answer, for which the input's first token stands.
std::vector<double> side_probabilities(std::span<const float> values, const Window& window,
                                       size_t side, bool may_be_none) {
  std::vector<float> logits;
  for (size_t i = 0; i < window.count; ++i)
    logits.push_back(values[2 * (window.position + i) + side]);
  if (may_be_none) logits.push_back(values[side]);
  return cpu_softmax(logits);
}

/// Adds the best span of a window for each start.
void add_spans(std::vector<Span>& spans, const Window& window, std::span<const double> starts,
               std::span<const double> ends, size_t longest) {
  for (size_t i = 0; i < window.count; ++i) {
    Span best = {window.first + i, window.first + i, -1};
    for (size_t j = i; j < std::min(window.count, i + longest); ++j) {
      if (starts[i] * ends[j] <= best.score) continue;
      best.last = window.first + j;
      best.score = starts[i] * ends[j];
    }
    spans.push_back(best);
  }
}

}  // namespace

struct PassageReader::Impl : EncoderRunner {};

PassageReader::PassageReader(std::shared_ptr<Device> device, const std::string& folder,
                             const LoadOptions& options)
    : PassageReader(std::move(device), open_model(folder), options) {}

PassageReader::PassageReader(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                             const LoadOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->device = given(std::move(device), "PassageReader");
  impl_->load(*model, options, Capability::kAnswer, EncoderTask::kAnswer);
}

PassageReader::~PassageReader() = default;
PassageReader::PassageReader(PassageReader&&) noexcept = default;
PassageReader& PassageReader::operator=(PassageReader&&) noexcept = default;

std::vector<PassageAnswer> PassageReader::answer(const std::string& question,
                                                 const std::string& passage,
                                                 const AnswerOptions& options) {
  const auto start = Clock::now();
  const PassageWords words = passage_words(*impl_->tokenizer, passage);
  impl_->begin(1);
  if (words.ids.empty() || options.best == 0) return {};
  // Tokenizing the question with one word of the passage gives the tokens around the passage, and
  // its position.
  const std::string some = passage.substr(words.words.front().begin,
                                          words.words.front().end - words.words.front().begin);
  const TokenizedInput frame = impl_->tokenize(question, &some);
  const size_t around = frame.ids.ids.size() - (frame.second_end - frame.second_begin);
  const size_t context = impl_->config().context;
  if (around >= context)
    throw ModelError(
        "question",
        fmt::format("leaves no room for the passage: it takes {} of {} tokens", around, context),
        "ask a shorter one");
  const std::vector<Window> windows =
      windows_of(words.ids.size(), context - around, options.overlap_tokens, frame.second_begin);
  std::vector<EncoderInput> inputs;
  const uint32_t type = frame.second_end > frame.second_begin ? frame.ids.types[frame.second_begin]
                                                              : frame.ids.types.back();
  for (const Window& window : windows) {
    const auto replace = [&](const std::vector<uint32_t>& list, auto first, auto last) {
      std::vector<uint32_t> result(list.begin(),
                                   list.begin() + static_cast<std::ptrdiff_t>(frame.second_begin));
      result.insert(result.end(), first, last);
      result.insert(result.end(), list.begin() + static_cast<std::ptrdiff_t>(frame.second_end),
                    list.end());
      return result;
    };
    const std::vector<uint32_t> types(window.count, type);
    const auto first = words.ids.begin() + static_cast<std::ptrdiff_t>(window.first);
    inputs.push_back(
        {replace(frame.ids.ids, first, first + static_cast<std::ptrdiff_t>(window.count)),
         replace(frame.ids.types, types.begin(), types.end())});
  }
  impl_->statistics.tokenize_seconds = seconds_since(start);

  std::vector<Span> spans;
  double none = 1;  // probability that no window has an answer
  size_t done = 0;
  impl_->run(inputs, EncoderOutput::kSpans, false, options.batch,
             [&](size_t index, std::vector<float> values) {
               const Window& window = windows[index];
               const std::vector<double> starts =
                   side_probabilities(values, window, 0, options.may_be_none);
               const std::vector<double> ends =
                   side_probabilities(values, window, 1, options.may_be_none);
               if (options.may_be_none) none = std::min(none, starts.back() * ends.back());
               add_spans(spans, window, starts, ends, std::max(options.longest_tokens, 1u));
               ++done;
             });
  impl_->statistics.total_seconds = seconds_since(start);
  if (done < windows.size()) return {};

  std::vector<PassageAnswer> answers;
  if (options.may_be_none) answers.push_back({.score = static_cast<float>(none)});
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.score > b.score; });
  for (const Span& span : spans) {
    if (answers.size() > options.best) break;  // one extra answer, because one may be "no answer"
    const size_t begin = words.words[words.word_of[span.first]].begin;
    const size_t end = words.words[words.word_of[span.last]].end;
    const bool there = std::any_of(answers.begin(), answers.end(), [&](const PassageAnswer& one) {
      return one.end > one.begin && one.begin == begin && one.end == end;
    });
    if (there) continue;
    answers.push_back(
        {passage.substr(begin, end - begin), begin, end, static_cast<float>(span.score)});
  }
  std::stable_sort(
      answers.begin(), answers.end(),
      [](const PassageAnswer& a, const PassageAnswer& b) { return a.score > b.score; });
  if (answers.size() > options.best) answers.resize(options.best);
  return answers;
}

const EncoderStatistics& PassageReader::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& PassageReader::device() const { return impl_->device; }
uint64_t PassageReader::trim() { return impl_->trim(); }

}  // namespace mulciber
