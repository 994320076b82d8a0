// Cases and reference of unfold_patches; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/patches.h"

namespace mulciber::conformance {
namespace {

struct PatchVariant {
  uint64_t images = 1, down = 1, across = 1;  // counts of images and of patches
  uint32_t size = 1, channels = 3, zero_rows = 0;
  bool bytes = false;  // pixels are words of four bytes
  bool exact = false;  // whole numbers without normalization
};

OpCase patch_case(const PatchVariant& v, KernelTypes types) {
  OpCase c;
  c.name = fmt::format("b{}_{}x{}_p{}_c{}", v.images, v.down, v.across, v.size, v.channels);
  if (v.zero_rows > 0) c.name += fmt::format(".after_{}", v.zero_rows);
  c.name += v.bytes ? ".bytes" : ".planes";
  if (v.exact) c.name += ".exact";
  c.types = types;
  c.exact = v.exact;
  c.must_pass = v.images > 1;
  const uint64_t height = v.down * v.size, width = v.across * v.size;
  PatchOptions options = {
      .size = v.size, .channels = v.channels, .zero_rows = v.zero_rows, .result = types.activation};
  if (!v.exact) {
    // The normalization of ImageNet's bytes in preprocessor_config.json.
    options.scale = {0.0171247f, 0.0175070f, 0.0174292f, 0.02f};
    options.shift = {-2.117904f, -2.035714f, -1.804444f, 0.25f};
  }
  if (v.bytes) {
    CaseInput words{{v.images, height, width}, DataType::kU32, nullptr};
    words.fill = [](std::vector<double>& values, std::mt19937& random) {
      for (double& value : values) value = static_cast<uint32_t>(random());
    };
    c.inputs = {words};
  } else {
    const Shape shape = {v.images, v.channels, height, width};
    c.inputs = {v.exact ? whole_input(shape, DataType::kF32, 255)
                        : normal_input(shape, DataType::kF32, 60, 128)};
  }
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    return std::vector<Tensor>{unfold_patches(builder, inputs[0], options)};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const uint64_t columns = uint64_t{v.channels} * v.size * v.size;
    CpuTensor y{{v.images, v.zero_rows + v.down * v.across, columns}, types.activation, {}, {}};
    const auto pixel = [&](uint64_t image, uint64_t channel, uint64_t line, uint64_t x) {
      if (!v.bytes)
        return inputs[0].values[((image * v.channels + channel) * height + line) * width + x];
      const auto word =
          static_cast<uint32_t>(inputs[0].values[(image * height + line) * width + x]);
      return static_cast<double>(word >> (8 * channel) & 255u);
    };
    for (uint64_t image = 0; image < v.images; ++image) {
      for (uint64_t i = 0; i < v.zero_rows * columns; ++i) append(y, Bounded(0));
      for (uint64_t patch = 0; patch < v.down * v.across; ++patch)
        for (uint64_t channel = 0; channel < v.channels; ++channel)
          for (uint64_t line = 0; line < v.size; ++line)
            for (uint64_t x = 0; x < v.size; ++x) {
              const Bounded value = pixel(image, channel, patch / v.across * v.size + line,
                                          patch % v.across * v.size + x);
              append(y, v.exact ? value
                                : value * Bounded(options.scale[channel]) +
                                      Bounded(options.shift[channel]));
            }
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

class UnfoldPatchesCases : public OpCases {
 public:
  std::string shape_format() const override { return "images,rows,columns,size"; }
  bool exact(KernelTypes) const override { return true; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 14, 14, 16}, {16, 14, 14, 16}, {1, 16, 16, 14}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 4 || std::ranges::count(shape, uint64_t{0}) > 0) {
      throw ShapeError("unfold_patches", "a shape is four positive numbers",
                       "give images, rows and columns of patches, and the pixels of a patch's "
                       "side, such as 1,14,14,16");
    }
    return patch_case({.images = shape[0],
                       .down = shape[1],
                       .across = shape[2],
                       .size = static_cast<uint32_t>(shape[3]),
                       .zero_rows = 1,
                       .bytes = true},
                      types);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (const bool bytes : {false, true}) {
      for (const bool exact : {false, true}) {
        const auto add = [&](PatchVariant v) {
          v.bytes = bytes;
          v.exact = exact;
          cases.push_back(patch_case(v, types));
        };
        add({});
        add({.channels = 1});
        add({.images = 2, .down = 3, .across = 2, .size = 4, .zero_rows = 1});
        add({.images = 3, .down = 2, .across = 5, .size = 7, .zero_rows = 2});
        add({.down = 1, .across = 3, .size = 5, .channels = 1});
        add({.images = 2, .down = 5, .across = 1, .size = 3, .channels = 4});
        add({.down = 3, .across = 3, .size = 3, .channels = 2, .zero_rows = 3});
        add({.down = 4, .across = 4, .size = 16, .zero_rows = 1});
        add({.down = 2, .across = 3, .size = 31});
      }
    }
    return cases;
  }
};

}  // namespace

const OpCases& unfold_patches_cases() {
  static const UnfoldPatchesCases cases;
  return cases;
}

}  // namespace mulciber::conformance
