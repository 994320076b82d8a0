// The interface of models for text embeddings, text classification and question answering.
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

/// A text, or a pair of texts, as token ids, special tokens included.
struct EncoderInput {
  std::vector<uint32_t> ids;
  std::vector<uint32_t> types;  // token type of each id: which text of a pair it belongs to
};

enum class EncoderOutput {
  kFirst,   // the hidden state of the first token
  kMean,    // the mean of the hidden states of all tokens
  kPooler,  // the bare model's pooler, applied to the first token's state
  kLast,    // the hidden state of the last token
  kMax,     // this and the next two: see Pooling
  kMeanSqrtLength,
  kWeightedMean,
  kLogits,  // a logit for each label
  kSpans,   // two logits for each token: an answer starts there, and ends there
  kStates,  // the hidden state of each token
};

struct EncoderRequest {
  std::span<const EncoderInput> inputs;  // the inputs of one batch
  EncoderOutput output = EncoderOutput::kMean;
  bool normalized = false;  // scale embeddings to length 1
};

struct EncoderResult {
  /// Values of each input; kSpans: (tokens, 2); kStates: (tokens, width).
  std::vector<std::vector<float>> values;
  uint64_t computed_tokens = 0;  // tokens that products and norms compute, padding included
  uint64_t predicted_bytes = 0;  // device memory for this batch, without the weights
  double prepare_seconds = 0, run_seconds = 0;
};

/// A projection of pooled embeddings, y = activation(x W^T + b): sentence-transformers' Dense.
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

  /// The model's tasks, labels and widths.
  virtual const EncoderConfig& config() const = 0;
  virtual bool has_pooler() const = 0;
  /// Appends a module that every later encode() applies after pooling.
  virtual void add_dense(const DenseModule& module) = 0;
  /// Most sequences of this length in a batch, by the device's storage range and memory.
  virtual uint32_t batch_limit(uint32_t length) = 0;
  /// Computes a batch. Throws ModelError when an input is empty, is longer than config().context or
  /// holds unknown ids, when the model has no such output, or when a result is not finite.
  virtual EncoderResult encode(const EncoderRequest& request) = 0;
  /// Begins a pass over one text that runs in slices. Throws as encode(), except for results that
  /// are not finite.
  virtual std::unique_ptr<EncodingPass> start(const EncodingStart& start) = 0;
  /// Pipelines of passes by start() for texts of at most `tokens` tokens or embeddings.
  virtual std::vector<PipelineKey> pipelines(uint32_t tokens, EncoderOutput output,
                                             bool normalized) const = 0;
  /// Drops what is kept for later texts: programs and caches.
  virtual void trim() = 0;
};

}  // namespace mulciber
