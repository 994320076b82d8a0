#include "models/core/vector_cosines.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/norm.h"

namespace mulciber {
namespace {

// Far below the mean square of any vector that is not zero.
constexpr float kLeastSquare = 1e-30f;
constexpr uint64_t kMostBytes = 32ull << 20;  // vectors on the device at a time
constexpr uint64_t kMostQueries = 64;         // at a time: their products need device memory

Buffer on_device(Device& device, std::span<const std::span<const float>> vectors) {
  std::vector<float> all;
  for (const std::span<const float> vector : vectors)
    all.insert(all.end(), vector.begin(), vector.end());
  const auto bytes = std::as_bytes(std::span(all));
  Buffer buffer = device.memory().allocate(bytes.size(), MemoryUsage::kActivations);
  upload(device, buffer.view(), bytes);
  return buffer;
}

}  // namespace

Tensor unit_length(ProgramBuilder& builder, const Tensor& x) {
  const auto columns = static_cast<float>(x.shape.columns());
  const Tensor gain = fill(builder, {x.shape.columns()}, 1 / std::sqrt(columns));
  return rms_norm(builder, x, gain, kLeastSquare);
}

std::vector<float> vector_cosines(Device& device, std::span<const std::span<const float>> queries,
                                  std::span<const std::span<const float>> vectors) {
  if (queries.empty() || vectors.empty()) return {};
  const uint64_t columns = queries.front().size();
  for (const auto list : {queries, vectors})
    for (const std::span<const float> vector : list)
      if (vector.size() != columns || columns == 0)
        throw ModelError("vectors",
                         fmt::format("of {} and {} elements are compared", columns, vector.size()),
                         "compare vectors of one model");
  const uint64_t range = std::min<uint64_t>(kMostBytes, device.capabilities().max_storage_range);
  const uint64_t step = std::max<uint64_t>(range / (columns * sizeof(float)), 1);
  std::vector<float> result(queries.size() * vectors.size());
  const uint64_t query_step = std::min(step, kMostQueries);
  for (uint64_t q = 0; q < queries.size(); q += query_step) {
    const auto some = queries.subspan(q, std::min<uint64_t>(query_step, queries.size() - q));
    for (uint64_t v = 0; v < vectors.size(); v += step) {
      const auto others = vectors.subspan(v, std::min<uint64_t>(step, vectors.size() - v));
      const uint64_t q_rows = some.size(), v_rows = others.size();
      const Buffer q_buffer = on_device(device, some), v_buffer = on_device(device, others);
      ProgramBuilder builder(device, "cosines");
      const Tensor left = unit_length(builder, q_buffer.tensor({q_rows, columns}, DataType::kF32));
      const Tensor right = unit_length(builder, v_buffer.tensor({v_rows, columns}, DataType::kF32));
      const Tensor products = matmul(builder, left, right);  // (queries, vectors)
      builder.keep(products);
      Program program = builder.build();
      program.run();
      const std::vector<float> part = download_as<float>(device, program.view(products));
      for (uint64_t i = 0; i < q_rows; ++i)
        std::copy_n(part.begin() + static_cast<std::ptrdiff_t>(i * v_rows), v_rows,
                    result.begin() + static_cast<std::ptrdiff_t>((q + i) * vectors.size() + v));
    }
  }
  return result;
}

}  // namespace mulciber
