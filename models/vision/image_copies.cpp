#include "models/vision/image_copies.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/elementwise.h"
#include "ops/texels.h"
#include "runtime/memory_barrier.h"
#include "runtime/recorder.h"

namespace mulciber {
namespace {

constexpr uint64_t kMostAtOnce = 1 << 18;

constexpr BarrierScope kEarlierWork = {
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
    VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
constexpr BarrierScope kLaterCopies = {VK_PIPELINE_STAGE_TRANSFER_BIT,
                                       VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};

/// Floats that are converted at once: whole words of any format.
uint64_t room_for(const PaddedRows& largest) {
  const uint64_t all = uint64_t{largest.rows} * largest.stride;
  return (std::max<uint64_t>(std::min(all, kMostAtOnce), largest.stride) + 3) / 4 * 4;
}

using AddTexels = std::function<Tensor(ProgramBuilder&)>;

/// The conversions of floats to texels, with the formats for which they are.
std::vector<std::pair<std::vector<VkFormat>, AddTexels>> conversions_of(const Tensor& numbers) {
  const auto packed = [&](TexelFormat format) {
    return [=](ProgramBuilder& builder) { return pack_texels(builder, numbers, format); };
  };
  const auto half = [=](ProgramBuilder& builder) {
    return convert(builder, numbers, DataType::kF16);
  };
  return {{{VK_FORMAT_R8_UNORM}, packed(TexelFormat::kUnorm8)},
          {{VK_FORMAT_R16_UNORM}, packed(TexelFormat::kUnorm16)},
          {{VK_FORMAT_R8G8B8A8_UNORM, VK_FORMAT_B8G8R8A8_UNORM}, packed(TexelFormat::kGrey8)},
          {{VK_FORMAT_R16_SFLOAT}, half}};
}

}  // namespace

std::vector<PipelineKey> ImageCopies::pipelines(const Capabilities& device,
                                                const PaddedRows& largest) {
  const Tensor numbers = planned_tensor({room_for(largest)});
  std::vector<PipelineKey> keys;
  for (const auto& [formats, add] : conversions_of(numbers)) {
    ProgramBuilder builder(device, "plan");
    add(builder);
    for (const Node& node : builder.nodes()) keys.push_back(pipeline_key(node, device));
  }
  return keys;
}

ImageCopies::ImageCopies(Device& device, const PaddedRows& largest)
    : device_(device), room_(room_for(largest)) {
  numbers_ = device.memory().allocate(room_ * sizeof(float), MemoryUsage::kActivations);
  const Tensor numbers = numbers_.tensor({room_}, DataType::kF32);
  for (const auto& [formats, add] : conversions_of(numbers)) {
    ProgramBuilder builder(device, "texels");
    const Tensor texels = add(builder);
    builder.keep(texels);
    Program program = builder.build();
    const BufferView view = program.view(texels);
    conversions_.push_back({formats, std::move(program), view});
  }
}

void ImageCopies::record(VkCommandBuffer commands, const PaddedRows& from,
                         const ApplicationImage& to, const char* what) {
  const DeviceFunctions& vk = device_.vk();
  if (to.format == VK_FORMAT_R32_SFLOAT) {
    record_copy(vk, commands, device_.queue_family(), from, to, what);
    return;
  }
  const auto found = std::ranges::find_if(conversions_, [&](const Conversion& conversion) {
    return std::ranges::find(conversion.formats, to.format) != conversion.formats.end();
  });
  if (found == conversions_.end())
    throw SettingError(
        what, fmt::format("goes into an image of VkFormat {}", static_cast<int>(to.format)),
        "make one of VK_FORMAT_R32_SFLOAT, or of another that ApplicationImage names");
  ImageCopy copy(vk, commands, device_.queue_family(), from.rows, from.columns, to, what);
  const auto at_once = static_cast<uint32_t>(room_ / from.stride);
  for (uint32_t first = 0; first < from.rows; first += at_once) {
    const uint32_t rows = std::min(at_once, from.rows - first);
    memory_barrier(vk, commands, kEarlierWork, kLaterCopies);
    const uint64_t row_bytes = from.stride * sizeof(float);
    const VkBufferCopy region = {from.view.offset + first * row_bytes, numbers_.view().offset,
                                 (rows - 1) * row_bytes + from.columns * sizeof(float)};
    vk.vkCmdCopyBuffer(commands, from.view.buffer, numbers_.view().buffer, 1, &region);
    found->program.record(commands);  // begins with a barrier behind transfers
    memory_barrier(vk, commands, kEarlierWork, kLaterCopies);
    copy.copy({found->texels, rows, from.columns, from.stride}, first);
  }
  copy.end();
}

}  // namespace mulciber
