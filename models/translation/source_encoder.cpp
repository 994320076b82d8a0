#include "models/translation/source_encoder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "models/core/recently_used.h"
#include "models/translation/search_memory.h"

namespace mulciber {
namespace {

// Most sources of one pass: more make it no quicker, and would need further programs.
constexpr uint32_t kMostSources = 16;
constexpr size_t kProgramsKept = 24;
constexpr uint64_t kBytesKept = 128ull << 20;

}  // namespace

struct SourceEncoder::Encoding {
  uint32_t items, length, slots;
  SourceControl layout;
  uint32_t words = 0;
  Buffer control;
  struct Memory {  // memory to which steps attend
    size_t index;  // among the network's state tensors
    uint64_t item_bytes;
    Buffer buffer;
  };
  std::vector<Memory> memory;
  // The ids of the sources whose memory it is, and the masks by which they were encoded.
  std::vector<std::vector<uint32_t>> held;
  HeadMasks held_masks;
  std::optional<Program> program;

  Encoding(Device& device, const EncoderDecoderNetwork& network, uint32_t items_, uint32_t length_,
           uint32_t slots_)
      : items(items_), length(length_), slots(slots_) {
    const SearchShape shape = {.batch = items,
                               .source_length = length,
                               .beams = 1,
                               .context = 2,
                               .room = {},
                               .masked_output = false};
    ControlLayout all;
    layout = plan_source(all, network, items, length);
    words = all.words();
    control =
        device.memory().allocate(uint64_t{words} * sizeof(uint32_t), MemoryUsage::kActivations);
    std::vector<Tensor> state;
    const std::vector<StateTensor> tensors = network.state_tensors(shape);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].grows) continue;
      const uint64_t bytes = tensors[i].shape.elements() * size_of(tensors[i].type);
      memory.push_back(
          {i, bytes / items, device.memory().allocate(bytes, MemoryUsage::kActivations)});
      state.push_back(memory.back().buffer.tensor(tensors[i].shape, tensors[i].type));
    }
    ProgramBuilder builder(device, "encode");
    builder.select_as(items, slots);
    network.encode(builder, {shape, layout, {}, control.tensor({words}, DataType::kU32), state});
    program = builder.build();
  }

  uint64_t bytes() const {
    uint64_t sum = program->plan().arena_bytes;
    for (const Memory& part : memory) sum += part.item_bytes * items;
    return sum;
  }
};

SourceEncoder::SourceEncoder(Device& device, const EncoderDecoderNetwork& network)
    : device_(device), network_(network) {}

SourceEncoder::~SourceEncoder() = default;

uint64_t SourceEncoder::kept_bytes() const {
  uint64_t sum = 0;
  for (const auto& entry : programs_) sum += entry->bytes();
  return sum;
}

void SourceEncoder::trim() { programs_.clear(); }

uint32_t SourceEncoder::padded_length(uint32_t length) const {
  return mulciber::padded_length(network_, length);
}

SourceEncoder::Encoding& SourceEncoder::encoding(uint32_t items, uint32_t length, uint32_t slots) {
  if (const auto* found = recently_used(programs_, [&](const auto& entry) {
        return entry->items == items && entry->length == length && entry->slots == slots;
      }))
    return **found;
  while (programs_.size() >= kProgramsKept || kept_bytes() > kBytesKept) programs_.pop_back();
  programs_.push_front(std::make_unique<Encoding>(device_, network_, items, length, slots));
  return *programs_.front();
}

/// Copies the memory of a source from an encoding to its slot.
void SourceEncoder::add_copies(const Encoding& from, uint32_t item, const SearchPrograms& search,
                               uint32_t slot, std::vector<DeviceCopy>& copies) const {
  const SearchShape& shape = search.all.shape;
  const std::vector<StateTensor> kept = network_.state_tensors(shape);
  for (const Encoding::Memory& part : from.memory) {
    const StateTensor& into = kept[part.index];
    const uint64_t slot_bytes = into.shape.elements() * size_of(into.type) / shape.batch;
    DeviceCopy copy = {part.buffer.view(), search.kept[part.index].view()};
    copy.from.offset += item * part.item_bytes;
    copy.to.offset += slot * slot_bytes;
    copy.from.size = copy.to.size = part.item_bytes;
    copies.push_back(copy);
  }
}

void SourceEncoder::encode(const SearchPrograms& search, std::span<const PlacedSource> sources,
                           std::span<const std::vector<uint32_t>> next, const HeadMasks& head_masks,
                           uint32_t pad) {
  const uint32_t slots = search.all.shape.batch;
  const auto length_of = [&](std::span<const uint32_t> ids) {
    return padded_length(static_cast<uint32_t>(ids.size()));
  };
  std::vector<DeviceCopy> copies;
  std::vector<PlacedSource> left;
  for (const PlacedSource& source : sources) {
    const bool held = std::ranges::any_of(programs_, [&](const auto& pass) {
      if (pass->slots != slots || pass->held_masks != head_masks) return false;
      const auto found = std::ranges::find_if(pass->held, [&](const std::vector<uint32_t>& ids) {
        return std::ranges::equal(ids, source.ids);
      });
      if (found == pass->held.end()) return false;
      add_copies(*pass, static_cast<uint32_t>(found - pass->held.begin()), search, source.slot,
                 copies);
      return true;
    });
    if (!held) left.push_back(source);
  }
  copy(device_, copies);

  std::ranges::stable_sort(left, std::greater<>(),
                           [&](const PlacedSource& source) { return length_of(source.ids); });
  for (size_t first = 0; first < left.size();) {
    const uint32_t length = length_of(left[first].ids);
    uint32_t count = 1;
    while (count < kMostSources && first + count < left.size() &&
           length_of(left[first + count].ids) == length)
      ++count;
    std::vector<std::vector<uint32_t>> group;
    for (const PlacedSource& source : std::span(left).subspan(first, count))
      group.emplace_back(source.ids.begin(), source.ids.end());
    if (first + count == left.size()) {
      while (group.size() < kMostSources && !next.empty() && length_of(next.front()) == length) {
        group.push_back(next.front());
        next = next.subspan(1);
      }
    }
    Encoding& pass = encoding(std::bit_ceil(static_cast<uint32_t>(group.size())), length, slots);
    ControlWords control(pass.words);
    control.fill(pass.layout.source, pad);
    for (uint32_t i = 0; i < group.size(); ++i) {
      control.set(pass.layout.source.part(uint64_t{i} * length, group[i].size()), group[i]);
      control.set(pass.layout.lengths, i, static_cast<uint32_t>(group[i].size()));
    }
    write_heads(control, pass.layout, network_, head_masks);
    upload(device_, pass.control.view(), control.bytes());
    if (device_.profiler()) {
      pass.program->run();  // its times are read when it is waited for
    } else {
      pass.program->submit();
    }
    pass.held = std::move(group);
    pass.held_masks = head_masks;
    copies.clear();
    for (uint32_t i = 0; i < count; ++i) add_copies(pass, i, search, left[first + i].slot, copies);
    copy(device_, copies);
    first += count;
  }
}

}  // namespace mulciber
