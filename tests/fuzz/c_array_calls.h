// Calls of the C interface that compute with images and arrays in memory, and describe models.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "mulciber/c/attention.h"
#include "mulciber/c/image_encoder.h"
#include "mulciber/c/model.h"
#include "tests/fuzz/c_run.h"

namespace mulciber::fuzz {

/// An array of numbers by choice, whose memory holds whatever its shape says.
struct ChosenArray {
  std::array<uint64_t, 9> shape = {};
  std::vector<float> values;
  MulciberFloatArray array = {};

  explicit ChosenArray(Choices& in) : values(64, in.single()) {
    constexpr uint64_t kExtents[] = {2, 1, 4, 0, 3};
    array = in.structure<MulciberFloatArray>();
    array.rank = 3;
    for (uint32_t i = 0; i < array.rank; ++i) shape[i] = kExtents[in.byte() % std::size(kExtents)];
    if (in.rarely()) array.rank = in.byte() % 4;
    if (in.rarely()) array.rank = 9;
    array.shape = in.or_null(shape.data());
    array.values = in.or_null(values.data());
  }
  ChosenArray(const ChosenArray&) = delete;
};

/// Each function reads its arguments from the input, makes one call and checks what it returns.
struct ArrayCalls {
  static void embed_images(Run& r) {
    constexpr uint32_t kSide = 48, kWidth = 64;
    const std::vector<uint8_t> rgb(size_t{kSide} * kSide * 3, r.in.byte());
    MulciberApplicationBuffer buffer;
    std::array<MulciberImage, 2> images = {};
    // A list is read by the size of its first image.
    const uint32_t size = r.in.size_of<MulciberImage>() == 8 ? 8 : sizeof(images[0]);
    for (MulciberImage& image : images) {
      image.size = size;
      image.width = r.in.byte() % (kSide + 1);
      image.height = r.in.byte() % (kSide + 1);
      image.rgb = r.in.or_null(rgb.data());
      if (r.in.rarely()) image.pixels = r.buffer(buffer);
    }
    auto info = r.in.structure<MulciberImageInfo>();
    info.mean = r.in.flag();
    info.normalize = r.in.flag();
    info.attention = r.in.flag();
    info.states = r.in.flag();
    info.batch_images = r.in.number();
    std::vector<float> vectors(size_t{2} * kWidth);
    MulciberImageEncoder* encoder = r.image_encoders.pick(r.in);
    MulciberResult* result = nullptr;
    const MulciberImageEmbedding* found = nullptr;
    const uint32_t count = r.in.byte() % 3;
    const MulciberStatus status = mulciber_embed_images(
        r.context(), encoder, count, r.in.or_null(images.data()), r.in.or_null(&info),
        r.in.or_null(vectors.data()), &result, r.in.or_null(&found));
    r.made(status, result);
    for (uint32_t i = 0; result && i < count; ++i)
      require(found[i].complete && found[i].size == sizeof(found[i]), "every image is embedded");
    mulciber_destroy_result(result);
  }
  static void attend(Run& r) {
    const ChosenArray weight(r.in), queries(r.in), keys(r.in), mask(r.in);
    auto projection = r.in.structure<MulciberProjection>();
    projection.weight = &weight.array;
    projection.bias_count = r.in.rarely() ? r.in.byte() % 64 : 0;
    projection.bias = r.in.or_null(weight.values.data());
    auto alibi = r.in.structure<MulciberAlibiBias>();
    auto description = r.in.structure<MulciberAttentionDescription>();
    description.heads = r.in.rarely() ? r.in.number() : r.in.byte() % 5;
    description.kv_heads = r.in.rarely() ? r.in.number() : 0;
    description.score = static_cast<MulciberAttentionScore>(r.in.rarely() ? 0x7fffffff : 0);
    if (r.in.rarely()) description.query = &projection;
    if (r.in.rarely()) description.alibi = &alibi;
    description.causal = r.in.flag();
    description.window = r.in.rarely() ? r.in.number() : 0;
    description.hard = r.in.flag();
    description.scale = r.in.rarely() ? r.in.single() : 0;
    description.soft_cap = r.in.rarely() ? r.in.single() : 0;
    MulciberAttention* attention = nullptr;
    MulciberDevice* device = r.devices.pick(r.in);
    r.made(mulciber_create_attention(r.context(), device, r.in.or_null(&description), &attention),
           attention);
    auto inputs = r.in.structure<MulciberAttentionInputs>();
    inputs.queries = r.in.or_null(&queries.array);
    inputs.keys = r.in.flag() ? &keys.array : inputs.queries;
    inputs.values = inputs.keys;
    if (r.in.rarely()) inputs.mask = &mask.array;
    inputs.has_query_offset = r.in.flag();
    inputs.query_offset = static_cast<int32_t>(r.in.number());
    MulciberResult* result = nullptr;
    const MulciberFloatArray *output = nullptr, *weights = nullptr;
    r.made(mulciber_compute_attention(r.context(), attention, r.in.or_null(&inputs), &result,
                                      &output, r.in.flag() ? &weights : nullptr),
           result);
    mulciber_destroy_result(result);
    mulciber_destroy_attention(attention);
  }
  static void describe(Run& r) {
    auto report = r.in.structure<MulciberModelReport>();
    auto of_images = r.in.structure<MulciberImageEncoderReport>();
    const MulciberModel* model = r.models.pick(r.in);
    MulciberResult* result = nullptr;
    const char* json = nullptr;
    switch (r.in.byte() % 4) {
      case 0: return r.told(mulciber_describe_model(r.context(), model, r.in.or_null(&report)));
      case 1:
        r.made(mulciber_inspect_model(r.context(), model, &result, r.in.or_null(&json)), result);
        return mulciber_destroy_result(result);
      case 2: {
        MulciberImageEncoder* encoder = r.image_encoders.pick(r.in);
        return r.told(
            mulciber_describe_image_encoder(r.context(), encoder, r.in.or_null(&of_images)));
      }
      default: {
        MulciberImageEncoder* encoder = r.image_encoders.pick(r.in);
        uint64_t freed = 0;
        return r.told(mulciber_trim_image_encoder(r.context(), encoder, r.in.or_null(&freed)));
      }
    }
  }
};

}  // namespace mulciber::fuzz
