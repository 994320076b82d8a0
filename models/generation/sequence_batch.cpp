#include "models/generation/sequence_batch.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/core/device_weights.h"
#include "models/generation/answer_grammar.h"
#include "models/generation/decoding.h"
#include "models/generation/not_finite.h"
#include "models/generation/sequence_run.h"
#include "mulciber/error.h"
#include "mulciber/text_generator.h"

namespace mulciber {
namespace {

constexpr uint32_t kPassTokens = 512;  // tokens of all rows
constexpr size_t kProgramsKept = 4;

uint32_t longest_pass(const BatchShape& shape) {
  uint32_t longest = 1;
  for (uint32_t length : kPassLengths) {
    if (length <= shape.context && (length <= 8 || length * shape.rows <= kPassTokens))
      longest = length;
  }
  return longest;
}

/// How many states the batch has a copy of.
uint64_t kept_states(const DecoderNetwork& network, const BatchShape& shape) {
  return network.decoder.keeps_states() && shape.rows == 1 ? network.decoder.layers.size() : 0;
}

}  // namespace

SequenceBatch::SequenceBatch(Device& device, const DecoderNetwork& network, const BatchShape& shape,
                             std::optional<uint64_t> memory_limit)
    : device_(device),
      network_(network),
      shape_(shape),
      layout_(plan_batch(network, shape, longest_pass(shape))) {
  if (memory_limit)
    require_memory(device, predict_bytes(device.capabilities(), network, shape), *memory_limit,
                   fmt::format("a context of {} x {} tokens", shape.rows, shape.context));
  tensors_ = batch_tensor_shapes(network, shape, layout_);
  const auto allocate = [&](Tensor& tensor, MemoryUsage use) {
    Buffer buffer = device.memory().allocate(tensor.bytes(), use);
    tensor = buffer.tensor(tensor.shape, tensor.type);
    return buffer;
  };
  control_ = allocate(tensors_.control, MemoryUsage::kActivations);
  progress_ = allocate(tensors_.progress, MemoryUsage::kReadback);
  for (Tensor& cache : tensors_.caches)
    cache_buffers_.push_back(allocate(cache, MemoryUsage::kActivations));
  if (tensors_.given) given_ = allocate(*tensors_.given, MemoryUsage::kActivations);
  for (uint64_t i = 0; i < kept_states(network, shape); ++i)
    kept_.push_back(
        device.memory().allocate(tensors_.caches[i].bytes(), MemoryUsage::kActivations));
  words_ = initial_words(network, layout_);
}

uint64_t SequenceBatch::predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                      const BatchShape& shape) {
  const BatchLayout layout = plan_batch(network, shape, longest_pass(shape));
  const BatchTensors tensors = batch_tensor_shapes(network, shape, layout);
  uint64_t bytes = tensors.control.bytes() + tensors.progress.bytes();
  for (const Tensor& cache : tensors.caches) bytes += cache.bytes();
  if (tensors.given) bytes += tensors.given->bytes();
  for (uint64_t i = 0; i < kept_states(network, shape); ++i) bytes += tensors.caches[i].bytes();
  for (uint32_t length : {1u, layout.longest}) {
    ProgramBuilder builder(device, "plan");
    build_decoder_pass(builder, network, layout, tensors, {length, PassOutput::kChoice});
    bytes += builder.plan().arena_bytes;
  }
  return bytes;
}

SequenceBatch::Built& SequenceBatch::built(const DecoderPass& shape,
                                           const std::set<DecoderPass>& wanted) {
  const auto found = programs_.find(shape);
  if (found != programs_.end()) return found->second;
  // Each program has an arena of its own. Nothing runs between prefill passes, so the shortest
  // program that the request does not need can go.
  if (programs_.size() >= kProgramsKept) {
    const auto least = std::find_if(programs_.begin(), programs_.end(), [&](const auto& kept) {
      return kept.first.length > 1 && wanted.count(kept.first) == 0;
    });
    if (least != programs_.end()) programs_.erase(least);
  }
  ProgramBuilder builder(device_, shape.length == 1 ? "decode step" : "prefill");
  const PassTensors kept = build_decoder_pass(builder, network_, layout_, tensors_, shape);
  return programs_.emplace(shape, Built{builder.build(), kept}).first->second;
}

void SequenceBatch::push() { upload(device_, control_.view(), words_.bytes()); }

void SequenceBatch::pull() { pull(layout_.control.words()); }

void SequenceBatch::pull(uint64_t end) {
  BufferView view = control_.view();
  view.size = end * sizeof(uint32_t);
  std::vector<uint32_t> words = download_as<uint32_t>(device_, view);
  const std::vector<uint32_t>& known = words_.words();
  words.insert(words.end(), known.begin() + static_cast<std::ptrdiff_t>(end), known.end());
  words_ = ControlWords(std::move(words));
}

/// Gives the caller the ids that are known after `steps` decode steps.
void SequenceBatch::drain(Run& run, uint32_t steps) {
  // Words of later steps may change while these are read: only ids of steps that were waited for
  // count.
  const auto* shown = reinterpret_cast<const volatile uint32_t*>(progress_.view().mapped);
  for (uint32_t row = 0; row < shape_.rows; ++row) {
    if (run.states[row] == SAMPLE_IDLE) continue;
    const uint32_t chosen = shown[layout_.state.progress_count(row)] - run.first[row];
    const uint32_t known = std::min(chosen, steps + 1);
    while (run.emitted[row] < known) {
      const uint32_t number = run.first[row] + run.emitted[row]++;
      const uint32_t id = shown[layout_.state.progress_token(row, number)];
      if (run.result.first_token_seconds == 0)
        run.result.first_token_seconds = seconds_since(run.start);
      run.result.rows[row].ids.push_back(id);
      if (AnswerGrammar* grammar = run.grammar(row)) {
        const auto begin = Clock::now();
        run.by_grammar([&] { grammar->take(id); });
        run.result.grammar_seconds += seconds_since(begin);
      }
      if (run.refused) return;
      if (run.request.on_token) run.request.on_token(row, id);
    }
  }
}

std::optional<SequenceBatch::Pass> SequenceBatch::next_pass(Run& run) {
  const auto& prompts = run.request.prompts;
  const SampleStateLayout& state = layout_.state;
  size_t most = 0;
  uint32_t room = shape_.context;
  for (uint32_t row = 0; row < shape_.rows; ++row) {
    const size_t left = prompts[row].size() - run.taken[row];
    most = std::max(most, left);
    // Padding tokens of a row fall behind its end, where they are never seen. They must not pass
    // the end of the cache, because the mask counts back from there.
    if (left > 0) room = std::min(room, shape_.context - this->length(row));
  }
  if (most == 0) return std::nullopt;
  Kind kind = {static_cast<uint32_t>(most), {}};
  if (!run.request.embeddings.empty()) kind = kind_of_tokens(run.request, run.taken[0]);
  const uint32_t length = pass_length(kind.tokens, layout_.longest, room);
  Pass pass = {{length, PassOutput::kCache, kind.rows.has_value(), run.request.states},
               std::vector<uint32_t>(shape_.rows, 0),
               kind.rows};
  for (uint32_t row = 0; row < shape_.rows; ++row) {
    const size_t left = prompts[row].size() - run.taken[row];
    const uint32_t fed = pass.fed[row] =
        static_cast<uint32_t>(std::min<size_t>({left, length, kind.tokens}));
    const bool ends = fed > 0 && fed == left && run.request.max_new_tokens > 0 &&
                      run.states[row] != SAMPLE_STOP_ID;
    if (ends) pass.shape.result = PassOutput::kChoice;
    if (fed > 0 && kind.rows) {
      // Padding tokens take the last embedding too: other rows may hold NaN.
      std::vector<uint32_t> numbers(length);
      for (uint32_t i = 0; i < length; ++i) numbers[i] = std::min(i, fed - 1);
      words_.set(layout_.fed_ids(row, length), numbers);
    } else if (fed > 0) {
      words_.set(layout_.fed_ids(row, length),
                 std::span(prompts[row]).subspan(run.taken[row], fed));
    }
    if (fed > 0 && row == 0 && !run.request.given.empty()) {
      GivenPart part =
          given_part(run.request.given, network_.width(), static_cast<uint32_t>(run.taken[row]),
                     fed, length, layout_.own_rows(), 1 / network_.stream_scale);
      pass.shape.mixed = !part.values.empty();
      pass.given = std::move(part.values);
      words_.set(*layout_.given, part.numbers);
    }
    words_.set(layout_.last, row, row * length + std::max(fed, 1u) - 1);
    words_.set(state.fed, row, fed);
    words_.set(state.stopped, row, ends ? SAMPLE_RUNNING : SAMPLE_IDLE);
    run.taken[row] += fed;
    run.result.prompt_tokens += fed;
  }
  return pass;
}

void SequenceBatch::report_prompt(const Run& run) const {
  if (!run.request.on_prompt) return;
  size_t total = 0;
  for (const auto& prompt : run.request.prompts) total += prompt.size();
  run.request.on_prompt(run.result.prompt_tokens, total);
}

void SequenceBatch::prefill(Run& run) {
  while (!run.is_cancelled()) {
    const std::optional<Pass> pass = next_pass(run);
    if (!pass) return;
    const auto built = Clock::now();
    Program& program = this->program(pass->shape);
    run.result.build_seconds += seconds_since(built);
    push();
    if (pass->shape.mixed)
      upload(device_, part_of(given_.view(), 0, pass->given.size() * sizeof(float)),
             std::as_bytes(std::span(pass->given)));
    program.run();
    pull();
    for (uint32_t row = 0; row < shape_.rows; ++row) {
      if (pass->fed[row] == 0) continue;
      if (run.chooses(row) && run.states[row] != SAMPLE_STOP_ID) {
        run.states[row] = words_.get(layout_.state.stopped, row);
      } else {
        words_.set(layout_.state.positions, row, this->length(row) + pass->fed[row]);
      }
    }
    drain(run, 0);
    report_prompt(run);
  }
}

void SequenceBatch::decode(Run& run) {
  const SampleStateLayout& state = layout_.state;
  bool running = false;
  for (uint32_t row = 0; row < shape_.rows; ++row) {
    const bool runs = run.states[row] == SAMPLE_RUNNING;
    words_.set(state.stopped, row, run.states[row]);
    words_.set(state.fed, row, runs ? 1 : 0);
    running = running || runs;
  }
  if (!running || run.is_cancelled()) return;
  push();
  const auto built = Clock::now();
  Program& step = program({1, PassOutput::kChoice});
  run.result.build_seconds += seconds_since(built);
  if (!run.request.grammars.empty()) return decode_by_grammar(run, step);
  const uint32_t in_flight = steps_in_flight(device_);
  const uint32_t together = run.request.steps_per_submission > 0 ? run.request.steps_per_submission
                            : in_flight > 1 ? device_.capabilities().tuning.steps_per_submission
                                            : 1;
  const auto* shown = reinterpret_cast<const volatile uint32_t*>(progress_.view().mapped);
  const auto finished = [&] {
    for (uint32_t row = 0; row < shape_.rows; ++row) {
      if (shown[state.progress_stopped(row)] == SAMPLE_RUNNING) return false;
    }
    return true;
  };
  const StepLoopResult loop = run_steps(device_, step,
                                        {.most_steps = run.request.max_new_tokens - 1,
                                         .finished = finished,
                                         .in_flight = in_flight,
                                         .steps_per_submission = std::min(together, state.ring / 8),
                                         .cancel = run.request.cancel,
                                         .on_first_submitted = {},
                                         .on_first_step = {},
                                         .on_steps = [&](uint32_t done) { drain(run, done); }});
  run.result.steps = loop.steps;
  run.cancelled = loop.cancelled;
  pull();
  for (uint32_t row = 0; row < shape_.rows; ++row) run.states[row] = words_.get(state.stopped, row);
}

void SequenceBatch::check_logits(const Run& run) {
  const SampleStateLayout& state = layout_.state;
  const auto lost = std::find(run.states.begin(), run.states.end(), uint32_t{SAMPLE_NOT_FINITE});
  if (lost == run.states.end()) return;
  const auto row = static_cast<uint32_t>(lost - run.states.begin());
  const uint32_t count = words_.get(state.counts, row);
  const auto history =
      words_.values(state.history_of(row)).first(std::min(count, state.history_capacity));
  const std::vector<uint32_t> tokens(history.begin(), history.end());
  for (uint32_t other = 0; other < shape_.rows; ++other) truncate(other, 0);
  refuse_logits(device_, network_.weights, fmt::format("after {} tokens", count), [&] {
    return first_layer_not_finite(device_, network_, layout_, tensors_, words_, row, tokens);
  });
}

void SequenceBatch::begin(Run& run) {
  const SequenceRequest& request = run.request;
  const SampleStateLayout& state = layout_.state;
  if (request.prompts.size() != shape_.rows)
    throw ModelError(
        "prompts",
        fmt::format("are {}, the batch has {} rows", request.prompts.size(), shape_.rows), "");
  if (request.stops.size() > kMostStops)
    throw ModelError(
        "stop ids",
        fmt::format("are {}, at most {} are looked for", request.stops.size(), kMostStops), "");
  if (!request.sampling.empty() && request.sampling.size() != shape_.rows)
    throw ModelError(
        "settings of sampling",
        fmt::format("are {}, the batch has {} rows", request.sampling.size(), shape_.rows), "");
  if (!request.grammars.empty() && request.grammars.size() != shape_.rows)
    throw ModelError(
        "grammars",
        fmt::format("are {}, the batch has {} rows", request.grammars.size(), shape_.rows), "");
  if (!request.streams.empty() && request.streams.size() != shape_.rows)
    throw ModelError(
        "streams of chance",
        fmt::format("are {}, the batch has {} rows", request.streams.size(), shape_.rows), "");
  if (!request.given.empty() && (shape_.rows != 1 || !network_.sees))
    throw SettingError("pictures",
                       "are given to a model loaded for several texts, or that sees none",
                       "load it for one text");
  run.states.assign(shape_.rows, SAMPLE_IDLE);
  run.first.assign(shape_.rows, 0);
  run.emitted.assign(shape_.rows, 0);
  run.taken.assign(shape_.rows, 0);
  run.result.rows.resize(shape_.rows);
  for (uint32_t row = 0; row < shape_.rows; ++row) {
    for (uint32_t id : request.prompts[row]) {
      if (id >= network_.vocabulary &&
          (id != kNoTokenId || (request.embeddings.empty() && request.given.empty())))
        throw ModelError(
            "prompt",
            fmt::format("holds token id {}, the model's are below {}", id, network_.vocabulary),
            "tokenizer and model do not belong together");
    }
    const uint64_t needed = length(row) + request.prompts[row].size();
    if (needed > shape_.context)
      throw ModelError("prompt",
                       fmt::format("takes the context to {} tokens, there is room for {}", needed,
                                   shape_.context),
                       "ask for a larger context, or give a shorter text");
    // The history goes on where the cache ends: an id that was chosen last and not fed is dropped.
    const auto& prompt = request.prompts[row];
    words_.set(state.history_of(row).part(length(row), prompt.size()), prompt);
    run.first[row] = static_cast<uint32_t>(needed);
    words_.set(state.counts, row, run.first[row]);
    SampleRow chooses = {.last_position = shape_.context};
    if (!request.sampling.empty()) chooses.sampling = request.sampling[row];
    if (!request.streams.empty()) chooses.stream = request.streams[row];
    chooses.last_count =
        static_cast<uint32_t>(std::min<uint64_t>(needed + request.max_new_tokens, 0xffffffff));
    words_.set(state.settings, row, sample_settings(chooses));
  }
  identity_ = identity();
  const std::vector<uint32_t>& told =
      request.identity.empty() ? request.prompts[0] : request.identity;
  identity_.insert(identity_.end(), told.begin(), told.end());
  words_.set_list(state.stops, request.stops);
  set_masks(run);

  auto* shown = reinterpret_cast<uint32_t*>(progress_.view().mapped);
  std::fill_n(shown, state.progress_words(), 0);
  for (uint32_t row = 0; row < shape_.rows; ++row)
    shown[state.progress_count(row)] = run.first[row];
}

SequenceResult SequenceBatch::generate(const SequenceRequest& request) {
  Run run(request);
  begin(run);
  prefill(run);
  keep_states();
  run.result.prefill_seconds = seconds_since(run.start) - run.result.build_seconds;
  const auto decoding = Clock::now();
  const double built_before = run.result.build_seconds;
  decode(run);
  run.result.decode_seconds = seconds_since(decoding) - (run.result.build_seconds - built_before);
  finish(run);
  return std::move(run.result);
}

void SequenceBatch::finish(Run& run) {
  const SequenceRequest& request = run.request;
  if (run.refused) std::rethrow_exception(run.refused);
  check_logits(run);

  for (uint32_t row = 0; row < shape_.rows; ++row) {
    if (request.prompts[row].empty()) continue;
    SequenceResult::Row& to = run.result.rows[row];
    const bool full = length(row) >= shape_.context;
    switch (run.states[row]) {
      case SAMPLE_STOP_ID: to.end = SequenceEnd::kStop; break;
      case SAMPLE_LIMIT:
        to.end = full && to.ids.size() < request.max_new_tokens ? SequenceEnd::kFull
                                                                : SequenceEnd::kLimit;
        break;
      default: to.end = run.cancelled ? SequenceEnd::kCancelled : SequenceEnd::kLimit;
    }
  }
}

}  // namespace mulciber
