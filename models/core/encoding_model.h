// What turning texts into vectors, classifying them and finding answers in them needs of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/core/model.h"
#include "ops/matmul.h"
#include "runtime/pipeline.h"

namespace mulciber {

/// A text, or a pair of them, as ids with what the tokenizer puts around it.
struct EncoderInput {
  std::vector<uint32_t> ids;
  std::vector<uint32_t> types;  // of each id the text of a pair it belongs to
};

enum class EncoderOutput {
  kFirst,   // the state of the first token
  kMean,    // the mean of the states of all tokens
  kPooler,  // what the bare model's pooler makes of the first
  kLast,    // the state of the last token
  kMax,     // and what else Pooling says
  kMeanSqrtLength,
  kWeightedMean,
  kLogits,  // of each label
  kSpans,   // of each token, that an answer starts there, and that it ends there
};

struct EncoderRequest {
  std::span<const EncoderInput> inputs;  // of one batch
  EncoderOutput output = EncoderOutput::kMean;
  bool normalized = false;  // vectors of length 1
};

struct EncoderResult {
  /// Of each input; kSpans: (tokens, 2).
  std::vector<std::vector<float>> values;
  uint64_t computed_tokens = 0;  // what products and norms work on: padding included
  uint64_t predicted_bytes = 0;  // of device memory for this batch, besides the weights
  double prepare_seconds = 0, run_seconds = 0;
};

/// A product that makes vectors of pooled states: y = activation(x W^T + b), as
/// sentence-transformers' Dense.
struct DenseModule {
  uint32_t in = 0, out = 0;
  std::vector<float> weight;  // (out, in)
  std::vector<float> bias;    // (out), or empty
  Activation activation = Activation::kNone;
};

struct EncoderConfig;  // models/families/encoder_config.h
class EncodingPass;    // models/encoding/encoding_pass.h
struct EncodingStart;

class EncodingModel {
 public:
  virtual ~EncodingModel() = default;

  /// What it was trained to do, its labels, its widths.
  virtual const EncoderConfig& config() const = 0;
  virtual bool has_pooler() const = 0;
  /// Goes on from what pooling gives, once for each, from now on.
  virtual void add_dense(const DenseModule& module) = 0;
  /// Most sequences of that length that fit one batch: by the device's storage range and by its
  /// memory.
  virtual uint32_t batch_limit(uint32_t length) = 0;
  /// Throws ModelError when an input is empty, longer than config().context, holds unknown ids, or
  /// the model has no such output, or when what it computes is not finite.
  virtual EncoderResult encode(const EncoderRequest& request) = 0;
  /// One text, to be run in slices. Throws as encode(), but for what is not finite.
  virtual std::unique_ptr<EncodingPass> start(const EncodingStart& start) = 0;
  /// What start() dispatches for texts of at most so many tokens, and for embeddings.
  virtual std::vector<PipelineKey> pipelines(uint32_t tokens, EncoderOutput output,
                                             bool normalized) const = 0;
};

}  // namespace mulciber
