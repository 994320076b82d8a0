#include "models/generation/decoder_state.h"

#include <algorithm>

#include "runtime/buffer_part.h"
#include "runtime/device.h"

namespace mulciber {
namespace {

// How far the CPU may lag behind the device, in tokens of a row.
constexpr uint32_t kRing = 256;

/// Contents of BatchLayout::head_masks: for each layer the factors of its heads, then the logits of
/// their sinks.
std::vector<float> head_factors(const DecoderNetwork& network) {
  if (network.sinks.empty()) return network.head_masks;
  std::vector<float> all;
  const size_t layers = network.decoder.layers.size(), heads = network.sinks.size() / layers;
  for (size_t layer = 0; layer < layers; ++layer) {
    for (size_t head = 0; head < heads; ++head)
      all.push_back(network.head_masks.empty() ? 1 : network.head_masks[layer * heads + head]);
    const auto sinks = network.sinks.begin() + static_cast<std::ptrdiff_t>(layer * heads);
    all.insert(all.end(), sinks, sinks + static_cast<std::ptrdiff_t>(heads));
  }
  return all;
}

// Sizes of buffers are rounded up to multiples of this.
constexpr uint64_t kBufferAlignment = 256;

}  // namespace

std::vector<LayerCache> layer_caches(const DecoderNetwork& network) {
  std::vector<LayerCache> caches;
  for (const CausalLayer& layer : network.decoder.layers)
    caches.push_back(layer.cache(network.cache));
  return caches;
}

uint32_t cache_reach(std::span<const LayerCache> caches) {
  uint32_t reach = 0;
  for (const LayerCache& cache : caches) {
    if (!cache.keeps_tokens()) continue;
    if (cache.window == 0) return UINT32_MAX;
    reach = std::max(reach, cache.window - 1);
  }
  return reach;
}

uint64_t largest_state(std::span<const LayerCache> caches) {
  uint64_t most = 0;
  for (const LayerCache& cache : caches)
    if (!cache.keeps_tokens()) most = std::max(most, cache.bytes(1));
  return most;
}

BatchLayout plan_batch(const DecoderNetwork& network, const BatchShape& shape, uint32_t longest) {
  BatchLayout layout;
  layout.context = shape.context;
  layout.longest = longest;
  layout.prompt = layout.control.add<uint32_t>(uint64_t{shape.rows} * longest);
  if (network.sees) layout.given = layout.control.add<uint32_t>(longest);
  layout.last = layout.control.add<uint32_t>(shape.rows);
  if (const uint32_t scales = network.adapter_scales(); scales > 0)
    layout.adapter_scales = layout.control.add<float>(uint64_t{shape.rows} * scales);
  // The last token of a sequence need not be in the cache.
  layout.state = plan_sample_state(layout.control, shape.rows, shape.context + 1, 0, kMostStops,
                                   kRing, shape.biases, network.vocabulary);
  uint32_t heads = 0;
  for (const CausalLayer& layer : network.decoder.layers)
    heads = std::max(heads, layer.attention.heads);
  layout.split_counters = layout.control.add<uint32_t>(uint64_t{shape.rows} * heads);
  if (const size_t factors = head_factors(network).size(); factors > 0)
    layout.head_masks = layout.control.add<float>(factors);
  if (shape.page > 0)
    layout.pages = layout.control.add<uint32_t>(uint64_t{shape.rows} * shape.row_pages());
  return layout;
}

BatchLayout part_of(const BatchLayout& layout, uint32_t first, uint32_t rows) {
  BatchLayout part = layout;
  SampleStateLayout& state = part.state;
  part.last = layout.last.part(first, rows);
  if (layout.adapter_scales) {
    const uint32_t of_row = layout.adapter_scales->count / layout.state.rows;
    part.adapter_scales =
        layout.adapter_scales->part(uint64_t{first} * of_row, uint64_t{rows} * of_row);
  }
  state.rows = rows;
  for (auto* array : {&state.positions, &state.tokens, &state.fed, &state.counts, &state.stopped})
    *array = array->part(first, rows);
  state.settings = state.settings.part(first, rows);
  const uint64_t capacity = state.history_capacity;
  state.history = state.history.part(first * capacity, rows * capacity);
  const uint64_t biases = 1 + 2 * uint64_t{state.bias_capacity};
  if (state.bias_capacity > 0) state.biases = state.biases.part(first * biases, rows * biases);
  const uint64_t mask = 1 + uint64_t{state.mask_words};
  state.masks = state.masks.part(first * mask, rows * mask);
  if (layout.pages) {
    const uint64_t pages = layout.pages->count / layout.state.rows;
    part.pages = layout.pages->part(first * pages, rows * pages);
  }
  return part;
}

BatchTensors part_of(const BatchTensors& tensors, const DecoderNetwork& network, uint32_t first,
                     uint32_t rows) {
  BatchTensors part = tensors;
  const std::vector<LayerCache> caches = layer_caches(network);
  for (size_t layer = 0; layer < part.caches.size(); ++layer) {
    if (caches[layer].keeps_tokens()) continue;
    Tensor& state = part.caches[layer];
    const uint64_t lines = state.shape[1], columns = state.shape.columns();
    state = state.row_slice(first * lines, rows * lines).reshaped({rows, lines, columns});
  }
  return part;
}

ControlWords initial_words(const DecoderNetwork& network, const BatchLayout& layout) {
  ControlWords words(layout.control.words());
  if (layout.head_masks) words.set(*layout.head_masks, head_factors(network));
  for (uint32_t row = 0; row < layout.state.rows; ++row)
    set_adapters(words, network, layout, row, {});
  return words;
}

void set_adapters(ControlWords& words, const DecoderNetwork& network, const BatchLayout& layout,
                  uint32_t row, std::span<const float> scales) {
  for (size_t i = 0; i < network.adapters.size(); ++i) {
    const NetworkAdapter& adapter = network.adapters[i];
    words.fill(layout.adapter_scales->part(uint64_t{row} * network.adapter_scales() + adapter.first,
                                           adapter.count),
               scales.empty() ? adapter.scale : scales[i]);
  }
}

BatchTensors batch_tensor_shapes(const DecoderNetwork& network, const BatchShape& shape,
                                 const BatchLayout& layout) {
  BatchTensors tensors = {
      .control = planned_tensor({layout.control.words()}, DataType::kU32),
      .progress = planned_tensor({layout.state.progress_words()}, DataType::kU32),
      .caches = {},
      .rows = {},
      .given = {}};
  if (layout.given)
    tensors.given = planned_tensor({uint64_t{layout.own_rows()} + layout.longest, network.width()},
                                   DataType::kF32);
  for (const LayerCache& cache : layer_caches(network))
    tensors.caches.push_back(shape.page > 0 && cache.keeps_tokens()
                                 ? cache.pages(shape.pages, shape.page)
                                 : cache.contexts(shape.rows, shape.context));
  return tensors;
}

DecoderState::DecoderState(Device& device, const DecoderNetwork& network, const BatchShape& shape,
                           const BatchLayout& layout, const Parts& parts)
    : device_(device),
      network_(network),
      shape_(shape),
      layout_(layout),
      tensors_(batch_tensor_shapes(network, shape, layout)),
      caches_(layer_caches(network)),
      words_(initial_words(network, layout)) {
  const auto allocate = [&](Tensor& tensor, MemoryUsage use) {
    Buffer buffer = device.memory().allocate(tensor.bytes(), use);
    tensor = buffer.tensor(tensor.shape, tensor.type);
    return buffer;
  };
  control_ = allocate(tensors_.control, MemoryUsage::kActivations);
  if (parts.choices) progress_ = allocate(tensors_.progress, MemoryUsage::kReadback);
  if (!parts.caches.empty()) {
    tensors_.caches.assign(parts.caches.begin(), parts.caches.end());
  } else {
    for (Tensor& cache : tensors_.caches)
      cache_buffers_.push_back(allocate(cache, MemoryUsage::kActivations));
  }
  if (parts.given && tensors_.given) given_ = allocate(*tensors_.given, MemoryUsage::kActivations);
}

uint64_t DecoderState::predict_bytes(const DecoderNetwork& network, const BatchShape& shape,
                                     const BatchLayout& layout, const Parts& parts) {
  const BatchTensors tensors = batch_tensor_shapes(network, shape, layout);
  uint64_t bytes = 0;
  const auto add = [&](const Tensor& tensor) {
    bytes += (tensor.bytes() + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  };
  add(tensors.control);
  if (parts.choices) add(tensors.progress);
  if (parts.caches.empty())
    for (const Tensor& cache : tensors.caches) add(cache);
  if (parts.given && tensors.given) add(*tensors.given);
  return bytes;
}

BufferView DecoderState::control(uint64_t first, uint64_t end) const {
  return part_of(control_.view(), first * sizeof(uint32_t), (end - first) * sizeof(uint32_t));
}

void DecoderState::upload() { mulciber::upload(device_, control_.view(), words_.bytes()); }

void DecoderState::upload(Uploader& uploader, uint64_t first, uint64_t end) const {
  const BufferView part = control(first, end);
  uploader.copy(part, words_.bytes().subspan(first * sizeof(uint32_t), part.size));
}

void DecoderState::download(uint64_t end) {
  std::vector<uint32_t> words = download_as<uint32_t>(device_, control(0, end));
  const std::vector<uint32_t>& known = words_.words();
  words.insert(words.end(), known.begin() + static_cast<std::ptrdiff_t>(end), known.end());
  words_ = ControlWords(std::move(words));
}

const volatile uint32_t* DecoderState::progress() const {
  return reinterpret_cast<const volatile uint32_t*>(progress_.view().mapped);
}

void DecoderState::begin_progress(std::span<const uint32_t> counts) {
  auto* words = reinterpret_cast<uint32_t*>(progress_.view().mapped);
  std::fill_n(words, layout_.state.progress_words(), 0);
  for (uint32_t row = 0; row < counts.size(); ++row)
    words[layout_.state.progress_count(row)] = counts[row];
}

void DecoderState::give(std::span<const float> values) {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  mulciber::upload(device_, part_of(given_.view(), 0, bytes.size()), bytes);
}

void DecoderState::need_rows() {
  if (tensors_.rows) return;
  const Shape shape = {layout_.longest, network_.width()};
  rows_ = device_.memory().allocate(shape.elements() * sizeof(float), MemoryUsage::kActivations);
  tensors_.rows = rows_.tensor(shape, DataType::kF32);
}

std::span<const uint32_t> DecoderState::ids(uint32_t row) const {
  return words_.values(layout_.state.history_of(row)).first(length(row));
}

std::vector<uint32_t> DecoderState::history(uint32_t row) const {
  const uint32_t count = words_.get(layout_.state.counts, row);
  const auto ids = words_.values(layout_.state.history_of(row))
                       .first(std::min(count, layout_.state.history_capacity));
  return {ids.begin(), ids.end()};
}

bool DecoderState::use_adapters(uint32_t row, std::span<const float> scales) {
  const std::vector<uint32_t> before(adapter_scales(row).begin(), adapter_scales(row).end());
  set_adapters(words_, network_, layout_, row, scales);
  return !std::ranges::equal(before, adapter_scales(row));
}

std::span<const uint32_t> DecoderState::adapter_scales(uint32_t row) const {
  if (!layout_.adapter_scales) return {};
  const uint32_t of_row = network_.adapter_scales();
  return words_.values({layout_.adapter_scales->word + row * of_row, of_row});
}

bool DecoderState::rewinds() const {
  return std::ranges::all_of(caches_, &LayerCache::keeps_tokens);
}

uint32_t DecoderState::room() const {
  uint64_t room = UINT32_MAX;
  for (size_t i = 0; i < caches_.size(); ++i)
    if (caches_[i].keeps_tokens()) room = std::min(room, tensors_.caches[i].shape[1]);
  return static_cast<uint32_t>(room);
}

BufferView DecoderState::cached(size_t layer, uint32_t row, uint32_t tokens) const {
  const LayerCache& cache = caches_[layer];
  return part_of(tensors_.caches[layer].view, row * cache.bytes(shape_.context),
                 cache.bytes(tokens));
}

BufferView DecoderState::cached_in_page(size_t layer, uint32_t page, uint32_t tokens) const {
  const LayerCache& cache = caches_[layer];
  return part_of(tensors_.caches[layer].view, page * cache.bytes(shape_.page), cache.bytes(tokens));
}

}  // namespace mulciber
