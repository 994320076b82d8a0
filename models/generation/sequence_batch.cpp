#include "models/generation/sequence_batch.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/core/device_weights.h"
#include "models/generation/completion_grammar.h"
#include "models/generation/decoding.h"
#include "models/generation/not_finite.h"
#include "models/generation/sequence_run.h"
#include "mulciber/error.h"
#include "mulciber/text_generator.h"
#include "runtime/recorder.h"

namespace mulciber {
namespace {

constexpr uint32_t kPassTokens = 512;  // tokens of all rows

uint32_t longest_pass(const BatchShape& shape) {
  uint32_t longest = 1;
  for (uint32_t length : kPassLengths) {
    if (length <= shape.context && (length <= 8 || length * shape.rows <= kPassTokens))
      longest = length;
  }
  return longest;
}

/// The bytes of each state of which the batch has a copy.
std::vector<uint64_t> kept_states(const DecoderNetwork& network, const BatchShape& shape) {
  std::vector<uint64_t> bytes;
  if (shape.rows != 1) return bytes;
  for (const LayerCache& cache : layer_caches(network))
    if (!cache.keeps_tokens()) bytes.push_back(cache.bytes(1));
  return bytes;
}

}  // namespace

SequenceBatch::SequenceBatch(Device& device, const DecoderNetwork& network, const BatchShape& shape,
                             std::optional<uint64_t> memory_limit)
    : state_([&] {
        if (memory_limit)
          require_memory(device, predict_bytes(device.capabilities(), network, shape),
                         *memory_limit,
                         fmt::format("a context of {} x {} tokens", shape.rows, shape.context));
        return DecoderState(device, network, shape, plan_batch(network, shape, longest_pass(shape)),
                            kDecodingParts);
      }()),
      programs_(state_, planned_passes(shape, state_.layout())) {
  for (const uint64_t bytes : kept_states(network, shape))
    kept_.push_back(device.memory().allocate(bytes, MemoryUsage::kActivations));
}

uint64_t SequenceBatch::predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                      const BatchShape& shape) {
  const BatchLayout layout = plan_batch(network, shape, longest_pass(shape));
  const BatchTensors tensors = batch_tensor_shapes(network, shape, layout);
  uint64_t bytes = DecoderState::predict_bytes(network, shape, layout, kDecodingParts);
  for (const uint64_t kept : kept_states(network, shape)) bytes += kept;
  bytes +=
      PassPrograms::predict_bytes(device, network, layout, tensors, planned_passes(shape, layout));
  return bytes;
}

std::vector<RowsPass> SequenceBatch::planned_passes(const BatchShape& shape,
                                                    const BatchLayout& layout) {
  return {{0, shape.rows, shape.rows, {.length = 1}},
          {0, shape.rows, shape.rows, {.length = layout.longest}}};
}

/// Gives the caller the ids that are known after `steps` decode steps.
void SequenceBatch::drain(Run& run, uint32_t steps) {
  // Words of later steps may change while these are read: only ids of steps that were waited for
  // count.
  const auto* shown = state_.progress();
  for (uint32_t row = 0; row < shape().rows; ++row) {
    if (run.states[row] == SAMPLE_IDLE) continue;
    const uint32_t chosen = shown[state_.layout().state.progress_count(row)] - run.first[row];
    const uint32_t known = std::min(chosen, steps + 1);
    while (run.emitted[row] < known) {
      const uint32_t number = run.first[row] + run.emitted[row]++;
      const uint32_t id = shown[state_.layout().state.progress_token(row, number)];
      if (run.result.first_token_seconds == 0)
        run.result.first_token_seconds = seconds_since(run.start);
      run.result.rows[row].ids.push_back(id);
      if (CompletionGrammar* grammar = run.grammar(row)) {
        const auto begin = Clock::now();
        run.by_grammar([&] { grammar->take(id); });
        run.result.grammar_seconds += seconds_since(begin);
      }
      if (run.refused) return;
      if (run.request.on_token) run.request.on_token(row, id);
    }
  }
}

SequenceBatch::Kind SequenceBatch::kind_of_tokens(const SequenceRequest& request,
                                                  size_t taken) const {
  const auto at = static_cast<uint32_t>(taken);
  auto end = static_cast<uint32_t>(request.prompts[0].size());
  for (const PromptRows& rows : request.embeddings) {
    if (rows.first > at) {
      end = std::min(end, rows.first);
      break;
    }
    if (at >= rows.first + rows.count) continue;
    const uint64_t row_bytes = state_.network().embedding.table.shape.columns() * sizeof(float);
    const uint32_t left = rows.first + rows.count - at;
    return {left, part_of(rows.from, (at - rows.first) * row_bytes, left * row_bytes)};
  }
  return {end - at, std::nullopt};
}

std::set<DecoderPass> SequenceBatch::passes(const SequenceRequest& request) const {
  std::set<DecoderPass> shapes;
  uint32_t held = length(0);
  auto left = static_cast<uint32_t>(request.prompts[0].size());
  while (left > 0) {
    const Kind kind = kind_of_tokens(request, request.prompts[0].size() - left);
    const uint32_t length =
        pass_length(kind.tokens, state_.layout().longest, shape().context - held);
    const uint32_t fed = std::min(kind.tokens, length);
    left -= fed;
    held += fed;
    const bool chooses = left == 0 && request.max_new_tokens > 0;
    shapes.insert({length, chooses ? PassOutput::kChoice : PassOutput::kCache,
                   kind.rows.has_value(), request.states});
  }
  return shapes;
}

void SequenceBatch::use_adapters(uint32_t row, std::span<const float> scales) {
  if (state_.use_adapters(row, scales)) truncate(row, 0);
}

void SequenceBatch::require_free() const {
  if (in_task_)
    throw SettingError("TextGenerator", "has a GenerationTask under way",
                       "destroy the task once its slices have ended, or take "
                       "TextGenerator::conversation()");
}

BufferView SequenceBatch::output_of(const DecoderPass& shape, Tensor PassTensors::*kept) {
  const PassPrograms::Built& pass = built(shape);
  return pass.program.view(pass.kept.*kept);
}

std::optional<SequenceBatch::Pass> SequenceBatch::next_pass(Run& run) {
  const auto& prompts = run.request.prompts;
  const SampleStateLayout& state = state_.layout().state;
  size_t most = 0;
  uint32_t room = shape().context;
  for (uint32_t row = 0; row < shape().rows; ++row) {
    const size_t left = prompts[row].size() - run.taken[row];
    most = std::max(most, left);
    // Padding tokens of a row fall behind its end, where they are never seen. They must not pass
    // the end of the cache, because the mask counts back from there.
    if (left > 0) room = std::min(room, shape().context - this->length(row));
  }
  if (most == 0) return std::nullopt;
  Kind kind = {static_cast<uint32_t>(most), {}};
  if (!run.request.embeddings.empty()) kind = kind_of_tokens(run.request, run.taken[0]);
  const uint32_t length = pass_length(kind.tokens, state_.layout().longest, room);
  Pass pass = {{length, PassOutput::kCache, kind.rows.has_value(), run.request.states},
               std::vector<uint32_t>(shape().rows, 0),
               kind.rows};
  for (uint32_t row = 0; row < shape().rows; ++row) {
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
      state_.words().set(state_.layout().fed_ids(row, length), numbers);
    } else if (fed > 0) {
      state_.words().set(state_.layout().fed_ids(row, length),
                         std::span(prompts[row]).subspan(run.taken[row], fed));
    }
    if (fed > 0 && row == 0 && !run.request.given.empty()) {
      GivenPart part = given_part(run.request.given, state_.network().width(),
                                  static_cast<uint32_t>(run.taken[row]), fed, length,
                                  state_.layout().own_rows(), 1 / state_.network().stream_scale);
      pass.shape.mixed = !part.values.empty();
      pass.given = std::move(part.values);
      state_.words().set(*state_.layout().given, part.numbers);
    }
    state_.words().set(state_.layout().last, row, row * length + std::max(fed, 1u) - 1);
    state_.words().set(state.fed, row, fed);
    state_.words().set(state.stopped, row, ends ? SAMPLE_RUNNING : SAMPLE_IDLE);
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
    state_.upload();
    if (pass->shape.mixed) state_.give(pass->given);
    program.run();
    state_.download(state_.layout().control.words());
    for (uint32_t row = 0; row < shape().rows; ++row) {
      if (pass->fed[row] == 0) continue;
      if (run.chooses(row) && run.states[row] != SAMPLE_STOP_ID) {
        run.states[row] = state_.words().get(state_.layout().state.stopped, row);
      } else {
        state_.words().set(state_.layout().state.positions, row,
                           this->length(row) + pass->fed[row]);
      }
    }
    drain(run, 0);
    report_prompt(run);
  }
}

void SequenceBatch::decode(Run& run) {
  const SampleStateLayout& state = state_.layout().state;
  bool running = false;
  for (uint32_t row = 0; row < shape().rows; ++row) {
    const bool runs = run.states[row] == SAMPLE_RUNNING;
    state_.words().set(state.stopped, row, run.states[row]);
    state_.words().set(state.fed, row, runs ? 1 : 0);
    running = running || runs;
  }
  if (!running || run.is_cancelled()) return;
  state_.upload();
  const auto built = Clock::now();
  Program& step = program({1, PassOutput::kChoice});
  run.result.build_seconds += seconds_since(built);
  if (!run.request.grammars.empty()) return decode_by_grammar(run, step);
  const uint32_t in_flight = steps_in_flight(state_.device());
  const uint32_t together = run.request.steps_per_submission > 0 ? run.request.steps_per_submission
                            : in_flight > 1
                                ? state_.device().capabilities().tuning.steps_per_submission
                                : 1;
  const auto* shown = state_.progress();
  const auto finished = [&] {
    for (uint32_t row = 0; row < shape().rows; ++row) {
      if (shown[state.progress_stopped(row)] == SAMPLE_RUNNING) return false;
    }
    return true;
  };
  const StepLoopResult loop = run_steps(state_.device(), step,
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
  state_.download(state_.layout().control.words());
  for (uint32_t row = 0; row < shape().rows; ++row)
    run.states[row] = state_.words().get(state.stopped, row);
}

void SequenceBatch::check_logits(const Run& run) {
  const SampleStateLayout& state = state_.layout().state;
  const auto lost = std::find(run.states.begin(), run.states.end(), uint32_t{SAMPLE_NOT_FINITE});
  if (lost == run.states.end()) return;
  const auto row = static_cast<uint32_t>(lost - run.states.begin());
  const uint32_t count = state_.words().get(state.counts, row);
  const std::vector<uint32_t> tokens = state_.history(row);
  for (uint32_t other = 0; other < shape().rows; ++other) truncate(other, 0);
  refuse_logits(state_.device(), state_.network().weights, fmt::format("after {} tokens", count),
                [&] { return first_layer_not_finite(state_, row, tokens); });
}

void SequenceBatch::begin(Run& run) {
  const SequenceRequest& request = run.request;
  const SampleStateLayout& state = state_.layout().state;
  if (request.prompts.size() != shape().rows)
    throw ModelError(
        "prompts",
        fmt::format("are {}, the batch has {} rows", request.prompts.size(), shape().rows), "");
  if (request.stops.size() > kMostStops)
    throw ModelError(
        "stop ids",
        fmt::format("are {}, at most {} are looked for", request.stops.size(), kMostStops), "");
  if (!request.sampling.empty() && request.sampling.size() != shape().rows)
    throw ModelError(
        "settings of sampling",
        fmt::format("are {}, the batch has {} rows", request.sampling.size(), shape().rows), "");
  if (!request.grammars.empty() && request.grammars.size() != shape().rows)
    throw ModelError(
        "grammars",
        fmt::format("are {}, the batch has {} rows", request.grammars.size(), shape().rows), "");
  if (!request.streams.empty() && request.streams.size() != shape().rows)
    throw ModelError(
        "streams of chance",
        fmt::format("are {}, the batch has {} rows", request.streams.size(), shape().rows), "");
  if (!request.given.empty() && (shape().rows != 1 || !state_.network().sees))
    throw SettingError("images", "are given to a model loaded for several texts, or that sees none",
                       "load it for one text");
  run.states.assign(shape().rows, SAMPLE_IDLE);
  run.first.assign(shape().rows, 0);
  run.emitted.assign(shape().rows, 0);
  run.taken.assign(shape().rows, 0);
  run.result.rows.resize(shape().rows);
  for (uint32_t row = 0; row < shape().rows; ++row) {
    for (uint32_t id : request.prompts[row]) {
      if (id >= state_.network().vocabulary &&
          (id != kNoTokenId || (request.embeddings.empty() && request.given.empty())))
        throw ModelError("prompt",
                         fmt::format("holds token id {}, the model's are below {}", id,
                                     state_.network().vocabulary),
                         "tokenizer and model do not belong together");
    }
    const uint64_t needed = length(row) + request.prompts[row].size();
    if (needed > shape().context)
      throw ModelError("prompt",
                       fmt::format("takes the context to {} tokens, there is room for {}", needed,
                                   shape().context),
                       "ask for a larger context, or give a shorter text");
    // The history goes on where the cache ends: an id that was chosen last and not fed is dropped.
    const auto& prompt = request.prompts[row];
    state_.words().set(state.history_of(row).part(length(row), prompt.size()), prompt);
    run.first[row] = static_cast<uint32_t>(needed);
    state_.words().set(state.counts, row, run.first[row]);
    SampleRow chooses = {.last_position = shape().context};
    if (!request.sampling.empty()) chooses.sampling = request.sampling[row];
    if (!request.streams.empty()) chooses.stream = request.streams[row];
    chooses.last_count =
        static_cast<uint32_t>(std::min<uint64_t>(needed + request.max_new_tokens, 0xffffffff));
    state_.words().set(state.settings, row, sample_settings(chooses));
  }
  identity_ = identity();
  const std::vector<uint32_t>& told =
      request.identity.empty() ? request.prompts[0] : request.identity;
  identity_.insert(identity_.end(), told.begin(), told.end());
  state_.words().set_list(state.stops, request.stops);
  set_masks(run);

  state_.begin_progress(run.first);
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

  for (uint32_t row = 0; row < shape().rows; ++row) {
    if (request.prompts[row].empty()) continue;
    SequenceResult::Row& to = run.result.rows[row];
    const bool full = length(row) >= shape().context;
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

std::vector<PipelineKey> SequenceBatch::pipelines() const {
  const Capabilities& device = state_.device().capabilities();
  BatchTensors tensors = state_.tensors();
  if (!tensors.rows) {
    tensors.rows = planned_tensor({state_.layout().longest, state_.network().width()});
  }
  std::vector<PipelineKey> keys;
  for (const uint32_t length : kPassLengths) {
    if (length > state_.layout().longest) break;
    // The third pass adds the pipelines of a caller's embeddings and of kept states, the fourth
    // those of embeddings from CPU memory.
    for (const DecoderPass& pass :
         {DecoderPass{length, PassOutput::kCache}, DecoderPass{length, PassOutput::kChoice},
          DecoderPass{length, PassOutput::kChoice, true, true},
          DecoderPass{.length = length, .mixed = state_.network().sees && shape().rows == 1}}) {
      ProgramBuilder builder(device, "plan");
      build_decoder_pass(builder, state_.network(), state_.layout(), tensors, pass);
      for (const Node& node : builder.nodes()) keys.push_back(pipeline_key(node, device));
    }
  }
  return keys;
}

}  // namespace mulciber
