#include "checkpoints/scaled_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>

#include "checkpoints/config_reader.h"
#include "checkpoints/tensor_values.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr const char* kDamagedMatrix =
    "the file is damaged, or of another quantizer: download it again, or take a GGUF file";
constexpr std::uint64_t kBlock = 32;

template <typename T>
T at(const std::byte* bytes, std::uint64_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

/// A tensor's bytes: in place, or a copy where an application's function reads the file.
class WholeTensor {
 public:
  explicit WholeTensor(const CheckpointTensor& tensor) : tensor_(tensor) {}
  const std::byte* bytes() const {
    if (tensor_.most_at_once() == UINT64_MAX) return tensor_.bytes.data();
    const std::lock_guard lock(mutex_);
    std::vector<std::byte> part;
    while (copy_.size() < tensor_.bytes.size()) {
      const auto read =
          tensor_.read(copy_.size(),
                       std::min(tensor_.bytes.size() - copy_.size(), tensor_.most_at_once()), part);
      copy_.insert(copy_.end(), read.begin(), read.end());
    }
    return copy_.data();
  }
  void release() const {
    tensor_.release();
    const std::lock_guard lock(mutex_);
    copy_ = {};
  }

 private:
  const CheckpointTensor& tensor_;
  mutable std::mutex mutex_;
  mutable std::vector<std::byte> copy_;
};

/// E4M3 numbers with one scale for each `block_rows` x `block_columns` elements.
class Fp8Parts : public BlockParts {
 public:
  Fp8Parts(const CheckpointTensor& values, std::vector<float> scales, std::uint64_t block_rows,
           std::uint64_t block_columns)
      : values_(values),
        scales_(std::move(scales)),
        columns_(values.shape[1]),
        block_rows_(block_rows),
        block_columns_(block_columns) {}
  void write(std::uint64_t first, std::span<std::byte> to) const override {
    std::vector<std::byte> scratch;
    const std::uint64_t count = to.size() / (4 + kBlock);
    const auto values = values_.read(first * kBlock, count * kBlock, scratch);
    const std::uint64_t across = (columns_ + block_columns_ - 1) / block_columns_;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t row = (first + i) * kBlock / columns_,
                          column = (first + i) * kBlock % columns_;
      std::byte* block = to.data() + i * (4 + kBlock);
      std::memcpy(block, &scales_[row / block_rows_ * across + column / block_columns_], 4);
      std::memcpy(block + 4, values.data() + i * kBlock, kBlock);
    }
  }
  void release() const override { values_.release(); }

 private:
  const CheckpointTensor& values_;
  std::vector<float> scales_;
  std::uint64_t columns_, block_rows_, block_columns_;
};

/// Eight four-bit numbers share a word. In GPTQ they are neighbours along K, and zero points along
/// N; in AWQ both are along N, even ones before odd ones.
class Int4Parts : public BlockParts {
 public:
  Int4Parts(const CheckpointTensor& numbers, const CheckpointTensor& zeros,
            const CheckpointTensor& scales, std::uint64_t rows, std::uint64_t columns,
            std::uint64_t group, const QuantizationConfig& config,
            std::vector<std::uint32_t> group_of_column, std::vector<std::uint32_t> order = {})
      : numbers_(numbers),
        zeros_(zeros),
        scales_(scales),
        rows_(rows),
        columns_(columns),
        group_(group),
        awq_(config.method == QuantizationConfig::Method::kAwq),
        zero_less_one_(config.zero_less_one),
        group_of_column_(std::move(group_of_column)),
        order_(std::move(order)) {}
  void write(std::uint64_t first, std::span<std::byte> to) const override {
    const Bytes bytes{numbers_.bytes(), zeros_.bytes(), scales_.bytes()};
    if (!group_of_column_.empty() && order_.empty()) return write_halves(bytes, first, to);
    const std::uint64_t blocks = columns_ / kBlock;
    for (std::uint64_t i = 0; i < to.size() / 20; ++i)
      write_block(bytes, (first + i) / blocks, (first + i) % blocks * kBlock, to.data() + i * 20);
  }
  void release() const override {
    numbers_.release();
    zeros_.release();
    scales_.release();
  }

 private:
  struct Bytes {
    const std::byte *numbers, *zeros, *scales;
  };
  std::uint16_t zero_point(const Bytes& bytes, std::uint64_t group, std::uint64_t row) const {
    const std::uint32_t stored = along_rows(bytes.zeros, group, row);
    return static_cast<std::uint16_t>(zero_less_one_ ? (stored + 1) & 15 : stored);
  }
  /// A number of GPTQ, where eight columns share a word.
  std::uint32_t number(const Bytes& bytes, std::uint64_t row, std::uint64_t column) const {
    return at<std::uint32_t>(bytes.numbers, column / 8 * rows_ + row) >> column % 8 * 4 & 15;
  }
  void write_halves(const Bytes& bytes, std::uint64_t first, std::span<std::byte> to) const {
    for (std::uint64_t i = 0; i < to.size() / 2; ++i) {
      const std::uint64_t row = (first + i) / columns_, column = (first + i) % columns_;
      const std::uint32_t group = group_of_column_[column];
      const float scale = half_to_float(at<std::uint16_t>(bytes.scales, group * rows_ + row));
      const int steps =
          static_cast<int>(number(bytes, row, column)) - zero_point(bytes, group, row);
      const std::uint16_t half = float_to_half(scale * static_cast<float>(steps));
      std::memcpy(to.data() + 2 * i, &half, 2);
    }
  }
  void write_block(const Bytes& bytes, std::uint64_t row, std::uint64_t column,
                   std::byte* block) const {
    const std::uint64_t group = order_.empty() ? column / group_ : group_of_column_[order_[column]];
    const auto scale = at<std::uint16_t>(bytes.scales, group * rows_ + row);
    const std::uint16_t zero = zero_point(bytes, group, row);
    std::memcpy(block, &scale, 2);
    std::memcpy(block + 2, &zero, 2);
    std::array<std::uint32_t, kBlock> numbers;
    for (std::uint64_t k = 0; k < kBlock; ++k) {
      const std::uint64_t in_file = order_.empty() ? column + k : order_[column + k];
      numbers[k] = awq_ ? along_rows(bytes.numbers, in_file, row) : number(bytes, row, in_file);
    }
    for (std::uint64_t k = 0; k < 16; ++k)
      block[4 + k] = static_cast<std::byte>(numbers[k] | numbers[k + 16] << 4);
  }
  std::uint32_t along_rows(const std::byte* words, std::uint64_t line, std::uint64_t row) const {
    const std::uint64_t place = awq_ ? row % 2 * 4 + row % 8 / 2 : row % 8;
    return at<std::uint32_t>(words, line * (rows_ / 8) + row / 8) >> place * 4 & 15;
  }

  WholeTensor numbers_, zeros_, scales_;
  std::uint64_t rows_, columns_, group_;
  bool awq_, zero_less_one_;
  std::vector<std::uint32_t> group_of_column_;  // empty: neighbouring columns share a group
  std::vector<std::uint32_t> order_;            // column order in which neighbours do; empty: none
};

class Finder {
 public:
  Finder(std::span<const CheckpointTensor* const> tensors, const QuantizationConfig& config,
         const std::string& where)
      : tensors_(tensors), config_(config), where_(where) {}

  const CheckpointTensor* find(const std::string& name) const {
    const auto at = std::ranges::lower_bound(tensors_, name, {},
                                             [](const CheckpointTensor* t) { return t->name; });
    return at != tensors_.end() && (*at)->name == name ? *at : nullptr;
  }
  [[noreturn]] void fail(const std::string& name, const std::string& problem,
                         const char* remedy = kDamagedMatrix) const {
    throw ModelError(where_, fmt::format("tensor '{}' {}", printable(name), problem), remedy);
  }
  const CheckpointTensor& need(const std::string& name, CheckpointType type,
                               const std::vector<std::uint64_t>& shape) const {
    const CheckpointTensor* tensor = find(name);
    if (!tensor) fail(name, "is missing beside the matrix that it belongs to");
    if (tensor->type != type)
      fail(name, fmt::format("is stored as {}, not {}", name_of(tensor->type), name_of(type)));
    if (tensor->shape != shape) {
      const CheckpointTensor wanted{name, type, shape, {}};
      fail(name, fmt::format("has shape {}, its matrix needs {}", tensor->shape_text(),
                             wanted.shape_text()));
    }
    return *tensor;
  }

  std::unique_ptr<CheckpointTensor> fp8(const CheckpointTensor& values) const {
    const std::uint64_t rows = values.shape[0], columns = values.shape[1];
    const CheckpointTensor* scale = find(values.name + "_scale_inv");
    if (!scale) scale = find(values.name + "_scale");
    std::uint64_t block_rows = std::max<std::uint64_t>(rows, 1), block_columns = columns;
    std::vector<float> scales = {1};
    if (scale) {
      if (!has_float_values(scale->type) || is_quantized(scale->type))
        fail(scale->name, fmt::format("is stored as {}", name_of(scale->type)));
      scales = read_floats(*scale, 0, scale->elements());
      const std::vector<std::uint64_t>& shape = scale->shape;
      const auto blocks = [](std::uint64_t extent, std::uint64_t of) {
        return (extent + of - 1) / of;
      };
      if (scales.size() == 1) {
      } else if (shape == std::vector{rows} || shape == std::vector{rows, std::uint64_t{1}}) {
        block_rows = 1;
      } else if (shape == std::vector{blocks(rows, config_.block_rows),
                                      blocks(columns, config_.block_columns)}) {
        block_rows = config_.block_rows;
        block_columns = config_.block_columns;
      } else {
        fail(scale->name,
             fmt::format("has shape {}, which fits neither the rows of its matrix {} nor "
                         "blocks of {} x {}",
                         scale->shape_text(), values.shape_text(), config_.block_rows,
                         config_.block_columns));
      }
    }
    return matrix(values.name, CheckpointType::kScaledF8E4M3, rows, columns, values,
                  std::make_shared<Fp8Parts>(values, std::move(scales), block_rows, block_columns));
  }

  std::unique_ptr<CheckpointTensor> int4(const CheckpointTensor& numbers,
                                         const std::string& stem) const {
    const bool awq = config_.method == QuantizationConfig::Method::kAwq;
    if (numbers.shape.size() != 2) fail(numbers.name, "has shape " + numbers.shape_text());
    const std::uint64_t columns = numbers.shape[0] * (awq ? 1 : 8),
                        rows = numbers.shape[1] * (awq ? 8 : 1);
    const std::uint64_t group =
        config_.group_size > 0 ? static_cast<std::uint64_t>(config_.group_size) : columns;
    if (columns == 0 || columns % kBlock != 0 || rows == 0 || rows % 8 != 0)
      fail(numbers.name,
           fmt::format("holds {} rows of {} columns, which are not multiples of 8 and 32", rows,
                       columns));
    need(numbers.name, CheckpointType::kI32, numbers.shape);
    const std::uint64_t groups = (columns + group - 1) / group;
    const CheckpointTensor& zeros =
        need(stem + ".qzeros", CheckpointType::kI32, {groups, rows / 8});
    const CheckpointTensor& scales = need(stem + ".scales", CheckpointType::kF16, {groups, rows});
    std::vector<std::uint32_t> group_of_column = groups_of_columns(stem, columns, groups, group);
    const bool wide = group % 128 == 0 || groups == 1;
    const CheckpointType blocks = wide ? CheckpointType::kInt4_128 : CheckpointType::kInt4_32;
    const auto parts = [&](std::vector<std::uint32_t> order) {
      return std::make_shared<Int4Parts>(numbers, zeros, scales, rows, columns, group, config_,
                                         group_of_column, std::move(order));
    };
    const std::string name = stem + ".weight";
    if (group_of_column.empty()) return matrix(name, blocks, rows, columns, numbers, parts({}));
    auto halves = matrix(name, CheckpointType::kF16, rows, columns, numbers, parts({}));
    if (const auto order = sorted_by_group(group_of_column, group, groups); !order.empty()) {
      halves->sorted = std::make_shared<const SortedColumns>(
          SortedColumns{*matrix(name, blocks, rows, columns, numbers, parts(order)), order});
    }
    return halves;
  }

 private:
  /// Columns sorted by group, stably; empty where a group has the wrong number of columns.
  static std::vector<std::uint32_t> sorted_by_group(const std::vector<std::uint32_t>& groups_of,
                                                    std::uint64_t group, std::uint64_t groups) {
    std::vector<std::uint32_t> order(groups_of.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t column) { return groups_of[column]; });
    for (std::uint64_t column = 0; column < order.size(); ++column)
      if (groups_of[order[column]] != (groups == 1 ? 0 : column / group)) return {};
    return order;
  }

  /// The content of `.g_idx`; empty where it is missing or groups are neighbouring columns.
  std::vector<std::uint32_t> groups_of_columns(const std::string& stem, std::uint64_t columns,
                                               std::uint64_t groups, std::uint64_t group) const {
    std::vector<std::uint32_t> result;
    if (!find(stem + ".g_idx")) return result;
    const WholeTensor order(need(stem + ".g_idx", CheckpointType::kI32, {columns}));
    bool sorted = true;
    for (std::uint64_t k = 0; k < columns; ++k) {
      result.push_back(at<std::uint32_t>(order.bytes(), k));
      sorted = sorted && result[k] == k / group;
      if (result[k] < groups) continue;
      fail(stem + ".g_idx", fmt::format("puts column {} into group {} of {}", k,
                                        at<std::int32_t>(order.bytes(), k), groups));
    }
    if (sorted) result.clear();
    return result;
  }

  static std::unique_ptr<CheckpointTensor> matrix(const std::string& name, CheckpointType type,
                                                  std::uint64_t rows, std::uint64_t columns,
                                                  const CheckpointTensor& main,
                                                  std::shared_ptr<const BlockParts> parts) {
    return std::make_unique<CheckpointTensor>(
        CheckpointTensor{name, type, {rows, columns}, main.bytes, main.file, std::move(parts)});
  }

  std::span<const CheckpointTensor* const> tensors_;
  const QuantizationConfig& config_;
  const std::string& where_;
};

}  // namespace

QuantizationConfig read_quantization(const Json& config, const std::string& where) {
  QuantizationConfig result;
  const ConfigReader reader(config, where);
  if (!reader.has("quantization_config")) return result;
  const ConfigReader given = reader.object("quantization_config");
  const std::string method = given.text_or("quant_method", "");
  using Method = QuantizationConfig::Method;
  if (method == "gptq" || method == "awq") {
    result.method = method == "gptq" ? Method::kGptq : Method::kAwq;
    if (given.integer("bits", 1, 64) != 4) given.fail("bits", "is not 4");
    result.group_size = given.integer("group_size", -1, 1 << 24);
    if (result.group_size != -1 && (result.group_size == 0 || result.group_size % 32 != 0))
      given.fail("group_size", fmt::format("is {}, not a multiple of 32", result.group_size));
    if (method == "awq" && given.text_or("version", "gemm") != "gemm" &&
        given.text_or("version", "gemm") != "GEMM")
      given.fail("version", "is not gemm");
    const std::string format = given.text_or("checkpoint_format", "gptq");
    if (method == "gptq" && format != "gptq" && format != "gptq_v2")
      given.fail("checkpoint_format", fmt::format("is {}, not gptq or gptq_v2", printable(format)));
    result.zero_less_one = method == "gptq" && format == "gptq";
  } else if (method == "fp8" || method == "compressed-tensors") {
    result.method = Method::kFp8;
    const std::string format = given.text_or("format", "float-quantized");
    if (method == "compressed-tensors" && format != "float-quantized" &&
        format != "naive-quantized")
      given.fail("format", fmt::format("is {}, not float-quantized", printable(format)));
    if (const Json* block = given.find("weight_block_size")) {
      const auto extent = [&](std::size_t i) -> std::uint64_t {
        const bool fits =
            block->is_array() && block->size() == 2 && (*block)[i].is_number_unsigned();
        const auto value = fits ? (*block)[i].get<std::uint64_t>() : 0;
        if (value == 0 || value > 1 << 20 || (i == 1 && value % 128 != 0))
          given.fail("weight_block_size", "is not [rows, a multiple of 128 columns]");
        return value;
      };
      result.block_rows = extent(0);
      result.block_columns = extent(1);
    }
  } else {
    given.fail("quant_method",
               fmt::format("is '{}'; fp8, compressed-tensors in fp8, gptq and awq are supported",
                           printable(method)));
  }
  return result;
}

std::vector<std::unique_ptr<CheckpointTensor>> scaled_matrices(
    std::span<const CheckpointTensor* const> tensors, const QuantizationConfig& config,
    const std::string& where) {
  using Method = QuantizationConfig::Method;
  const Finder finder(tensors, config, where);
  std::vector<std::unique_ptr<CheckpointTensor>> result;
  for (const CheckpointTensor* tensor : tensors) {
    constexpr std::string_view kPacked = ".qweight";
    if (tensor->type == CheckpointType::kF8E4M3 && tensor->shape.size() == 2 &&
        tensor->shape[1] % kBlock == 0 && tensor->shape[1] > 0) {
      result.push_back(finder.fp8(*tensor));
    } else if (tensor->name.ends_with(kPacked) &&
               (config.method == Method::kGptq || config.method == Method::kAwq)) {
      result.push_back(
          finder.int4(*tensor, tensor->name.substr(0, tensor->name.size() - kPacked.size())));
    }
  }
  std::ranges::sort(result, {}, [](const auto& tensor) { return tensor->name; });
  return result;
}

}  // namespace mulciber
