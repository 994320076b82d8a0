#include "models/translation/encoder_decoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/core/device_weights.h"
#include "models/core/recently_used.h"
#include "models/generation/not_finite.h"
#include "models/translation/batch_search.h"
#include "models/translation/search_memory.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Programs kept for shapes seen before. Each holds its caches and its arena, so their bytes are
// bounded too; the program in use is always kept.
constexpr size_t kSearchesKept = 6;
constexpr uint64_t kSearchBytesKept = 256ull << 20;
constexpr size_t kPassesKept = 64;
constexpr uint64_t kPassBytesKept = 256ull << 20;

}  // namespace

EncoderDecoder::EncoderDecoder(Device& device, std::unique_ptr<EncoderDecoderNetwork> network,
                               const Weights* weights, uint64_t memory_limit)
    : device_(device),
      network_(std::move(network)),
      encoder_(device, *network_),
      weights_(weights),
      memory_limit_(memory_limit) {}

EncoderDecoder::~EncoderDecoder() = default;

uint32_t EncoderDecoder::batch_limit(uint32_t source_length, const GenerationSettings& settings) {
  const uint64_t range = device_.capabilities().max_storage_range;
  const uint64_t available = device_.memory().available();
  const uint64_t memory = memory_limit_ > 0 ? std::min(memory_limit_, available) : available;
  constexpr uint32_t kMost = 1024;
  uint32_t best = 1;
  // Half of the memory: the programs of another shape may still be there.
  for (uint32_t items = 1; items <= kMost; ++items) {
    const SearchShape shape = search_shape(*network_, items, source_length, settings);
    if (widest_binding(*network_, shape) > range || search_bytes(*network_, shape) > memory / 2)
      break;
    best = items;
  }
  return best;
}

void EncoderDecoder::trim() {
  std::erase_if(searches_, [](const auto& kept) { return kept.use_count() == 1; });
  std::erase_if(passes_, [](const auto& kept) { return kept.use_count() == 1; });
  encoder_.trim();
}

uint64_t EncoderDecoder::kept_search_bytes() const {
  uint64_t bytes = 0;
  for (const auto& entry : searches_) bytes += search_bytes(*network_, entry->all.shape);
  return bytes;
}

std::shared_ptr<SearchPrograms> EncoderDecoder::search(const SearchShape& shape) {
  // Programs of a running task are not free.
  if (const auto* found = recently_used(searches_, [&](const auto& entry) {
        return entry->all.shape == shape && entry.use_count() == 1;
      }))
    return *found;
  const uint64_t bytes = search_bytes(*network_, shape);
  while (!searches_.empty() &&
         (searches_.size() >= kSearchesKept || kept_search_bytes() + bytes > kSearchBytesKept ||
          bytes > device_.memory().available()))
    searches_.pop_back();
  require_memory(device_, bytes, memory_limit_,
                 fmt::format("a batch of {} x {} tokens with {} beams", shape.batch,
                             shape.source_length, shape.beams));
  searches_.push_front(std::make_shared<SearchPrograms>(device_, *network_, shape));
  return searches_.front();
}

std::shared_ptr<PassProgram> EncoderDecoder::pass(const PassShape& shape) {
  if (const auto* found = recently_used(passes_, [&](const auto& entry) {
        return entry->shape == shape && entry.use_count() == 1;  // no running task has it
      }))
    return *found;
  const auto bytes = [&] {
    uint64_t sum = 0;
    for (const auto& entry : passes_) sum += entry->program->plan().arena_bytes;
    return sum;
  };
  while (passes_.size() >= kPassesKept || bytes() > kPassBytesKept) passes_.pop_back();
  passes_.push_front(std::make_shared<PassProgram>(device_, *network_, shape));
  return passes_.front();
}

ControlWords EncoderDecoder::begin(const SearchPrograms& programs, const GenerationRequest& request,
                                   uint32_t pad) const {
  ControlWords control(programs.all.words);
  const SourceControl& layout = programs.all.layout;
  const auto items = static_cast<uint32_t>(request.sources.size());
  control.fill(layout.source, pad);
  for (uint32_t row = 0; row < items; ++row) {
    const std::vector<uint32_t>& source = request.sources[row];
    control.set(layout.source.part(uint64_t{row} * programs.all.shape.source_length, source.size()),
                source);
    control.set(layout.lengths, row, static_cast<uint32_t>(source.size()));
  }
  write_heads(control, layout, *network_, request.head_masks);
  initialize_search(control, programs.all.beam, request.settings, items);
  return control;
}

std::unique_ptr<SearchTask> EncoderDecoder::start(const GenerationRequest& request, uint32_t pad) {
  const std::shared_ptr<SearchPrograms> programs = search(search_shape(
      *network_, 1, static_cast<uint32_t>(request.sources.front().size()), request.settings));
  programs->encode_whole(device_, *network_);
  return std::make_unique<SearchTask>(device_, programs, begin(*programs, request, pad),
                                      request.settings);
}

void EncoderDecoder::check(const SearchTask& task, const GenerationRequest& request) {
  if (task.not_finite())
    refuse("of a translation", request.sources.front(), {request.settings.start},
           request.head_masks);
}

std::unique_ptr<SearchSlots> EncoderDecoder::open_search(uint32_t slots, uint32_t source_length,
                                                         const GenerationSettings& settings,
                                                         const HeadMasks& head_masks) {
  return std::make_unique<SearchSlots>(
      device_, *network_, encoder_, search(search_shape(*network_, slots, source_length, settings)),
      settings, head_masks);
}

GenerationResult EncoderDecoder::generate(const GenerationRequest& request) {
  const uint32_t items = static_cast<uint32_t>(request.sources.size());
  size_t longest = 0;
  for (const std::vector<uint32_t>& source : request.sources)
    longest = std::max(longest, source.size());
  const uint32_t count = request.slots > 0 ? std::min(request.slots, items) : items;
  const SearchShape shape =
      search_shape(*network_, count, static_cast<uint32_t>(longest), request.settings);

  GenerationResult result;
  const auto prepared = Clock::now();
  SearchSlots slots(device_, *network_, encoder_, search(shape), request.settings,
                    request.head_masks, request.stays_whole);
  result.prepare_seconds = seconds_since(prepared);

  BatchSearchResult found = search_batch(slots, request);
  result.predicted_bytes = kept_search_bytes() + encoder_.kept_bytes();
  const SlotStatistics& statistics = slots.statistics();
  result.encode_seconds = statistics.encode_seconds;
  result.decode_seconds = found.seconds - statistics.encode_seconds;
  result.steps = static_cast<uint32_t>(statistics.steps);
  result.row_steps = statistics.row_steps;
  result.needed_row_steps = statistics.needed_row_steps;
  result.refills = static_cast<uint32_t>(statistics.refills);
  result.cancelled = found.cancelled;
  if (found.cancelled) return result;
  if (found.not_finite)
    refuse("of a translation", request.sources[*found.not_finite], {request.settings.start},
           request.head_masks);
  for (std::vector<Hypothesis>& item : found.items) {
    if (item.size() > request.settings.n_best) item.resize(request.settings.n_best);
    result.items.push_back(std::move(item));
  }
  return result;
}

ControlWords EncoderDecoder::begin(const PassProgram& program,
                                   const ForwardRequest& request) const {
  const PassShape& shape = program.shape;
  ControlWords control(program.words);
  const auto write_rows = [&](const PaddedIds& from, const ControlArray<uint32_t>& to,
                              uint32_t length) {
    for (uint32_t row = 0; row < shape.batch; ++row)
      control.set(to.part(uint64_t{row} * length, from.length),
                  std::span(from.ids).subspan(uint64_t{row} * from.length, from.length));
  };
  write_rows(request.source, program.layout.source, shape.source_length);
  write_rows(request.target, program.target, shape.target_length);
  control.set(program.layout.lengths, request.source.lengths);
  write_heads(control, program.layout, *network_, request.head_masks);
  if (shape.scores) {
    program.scores.initialize(control);
    for (uint32_t row = 0; row < shape.batch; ++row) {
      for (uint32_t i = 0; i < request.next[row].size(); ++i)
        program.scores.set_target(control, row * shape.target_length + i, request.next[row][i]);
    }
  }
  return control;
}

void EncoderDecoder::run(PassProgram& program, const ForwardRequest& request) {
  upload(device_, program.control.view(), begin(program, request).bytes());
  program.program->run();
}

std::vector<std::vector<double>> EncoderDecoder::score(const ForwardRequest& request) {
  // The shape is not rounded up: the same texts are scored again and again, and padding would
  // double the work.
  const std::shared_ptr<PassProgram> kept = pass({.batch = request.source.rows,
                                                  .source_length = request.source.length,
                                                  .target_length = request.target.length,
                                                  .logits = false,
                                                  .hidden_states = false,
                                                  .attentions = false,
                                                  .scores = true});
  PassProgram& program = *kept;
  run(program, request);
  const std::vector<double> scores = program.scores.read(device_, *program.program);
  std::vector<std::vector<double>> rows;
  for (size_t row = 0; row < request.next.size(); ++row) {
    const auto first = scores.begin() + static_cast<std::ptrdiff_t>(row * request.target.length);
    rows.emplace_back(first, first + static_cast<std::ptrdiff_t>(request.next[row].size()));
    if (std::ranges::any_of(rows.back(), [](double score) { return std::isnan(score); })) {
      const auto ids = [&](const PaddedIds& from, size_t count) {
        const auto begin = from.ids.begin() + static_cast<std::ptrdiff_t>(row * from.length);
        return std::vector<uint32_t>(begin, begin + static_cast<std::ptrdiff_t>(count));
      };
      refuse(fmt::format("of text {}", row), ids(request.source, request.source.lengths[row]),
             ids(request.target, request.next[row].size()), request.head_masks);
    }
  }
  return rows;
}

void EncoderDecoder::refuse(const std::string& whose, const std::vector<uint32_t>& source,
                            const std::vector<uint32_t>& target, const HeadMasks& head_masks) {
  refuse_logits(device_, weights_, whose, [&]() -> std::string {
    const ForwardResult result = forward({.source = pad_ids({&source, 1}, 0),
                                          .target = pad_ids({&target, 1}, 0),
                                          .head_masks = head_masks,
                                          .hidden_states = true});
    for (const std::string stack : {"encoder", "decoder"}) {
      const auto states = result.find(stack + "_hidden_states");
      if (states == result.end()) continue;
      const std::vector<double>& values = states->second.values;
      const auto lost = std::ranges::find_if(values, [](double v) { return !std::isfinite(v); });
      if (lost == values.end()) continue;
      const auto layer =
          static_cast<uint64_t>(lost - values.begin()) / (values.size() / states->second.shape[0]);
      return layer == 0 ? fmt::format("the {}'s embedding", stack)
                        : fmt::format("the {}'s layer {}", stack, layer - 1);
    }
    return {};
  });
}

uint32_t EncoderDecoder::padded_length(uint32_t length) const {
  return mulciber::padded_length(*network_, length);
}

PassShape EncoderDecoder::padded_shape(const ForwardRequest& request) const {
  return {.batch = request.source.rows,
          .source_length = padded_length(request.source.length),
          .target_length = padded_length(request.target.length),
          .logits = request.logits,
          .hidden_states = request.hidden_states,
          .attentions = request.attentions};
}

ForwardResult EncoderDecoder::forward(const ForwardRequest& request) {
  const uint32_t rows = request.source.rows;
  const PassShape shape = padded_shape(request);
  const std::shared_ptr<PassProgram> kept = pass(shape);
  PassProgram& program = *kept;
  run(program, request);

  ForwardResult result;
  /// Appends a kept tensor, cut to `extents`, to the array of that name.
  const auto read = [&](const std::string& output, const std::string& kept,
                        std::vector<uint64_t> extents, bool stacked) {
    const Tensor& tensor = program.trace.at(kept);
    std::vector<uint64_t> from;
    for (size_t i = 0; i < tensor.shape.rank(); ++i)
      from.push_back(tensor.shape[static_cast<int>(i)]);
    const std::vector<float> values = download_as<float>(device_, program.program->view(tensor));
    const std::vector<double> part = crop(values, from, extents);
    NamedArray& array = result[output];
    array.values.insert(array.values.end(), part.begin(), part.end());
    if (stacked) {
      const uint64_t layers = array.shape.empty() ? 1 : array.shape[0] + 1;
      extents.insert(extents.begin(), layers);
    }
    array.shape = extents;
  };
  PassShape wanted = shape;
  wanted.source_length = request.source.length;
  wanted.target_length = request.target.length;
  for (const NetworkOutput& output : network_->outputs(wanted))
    read(output.name, output.trace, output.extents, output.stacked);
  if (request.logits)
    read("logits", "decoder.output.logits",
         {rows, request.target.length, network_->target_vocabulary}, false);
  return result;
}

}  // namespace mulciber
