// Decodes texts from an encoder's output in memory: token by token with caches, or in full passes
// for their attention maps.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/core/device_weights.h"
#include "models/networks/text_decoder.h"
#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// The interface that a search for a text needs: it decodes several alternatives at once, a token
/// at a time.
class MemoryReader {
 public:
  virtual ~MemoryReader() = default;

  /// Number of ids, and most tokens that can be fed.
  virtual uint32_t vocabulary() const = 0;
  virtual uint32_t context() const = 0;
  /// Begins `rows` texts at once, which are alternatives. Throws ModelError above kMaxBeams,
  /// DeviceError where their caches do not fit.
  virtual void begin(uint32_t rows) = 0;
  /// Feeds every row of texts that were just begun the same ids, in one pass. also_behind: index of
  /// another id among them whose logits are wanted. Result: logits (2, vocabulary) behind the last
  /// id and behind that one, valid until the next step. Throws as step() does.
  virtual std::span<const float> prompt(std::span<const uint32_t> ids, size_t also_behind) = 0;
  /// Feeds each row a token. parents: the row of the step before whose text each row continues;
  /// read where a token stands before. Result: logits (rows, vocabulary), valid until the next
  /// step. Throws ModelError where the context is full or an id is unknown.
  virtual std::span<const float> step(std::span<const uint32_t> tokens,
                                      std::span<const uint32_t> parents) = 0;
};

/// Texts over the memory of one encoded window or image, which stays where it is: the encoder
/// writes there. Programs are built when first needed, and kept: steps for each number of rows,
/// prompts by length, and the most recently used full passes. Not thread-safe.
class MemoryTexts : public MemoryReader {
 public:
  /// memories: the memory of each layer, (1, positions, columns). Memories, decoder and weights
  /// must outlive the object.
  MemoryTexts(Device& device, const Weights& weights, const TextDecoder& decoder,
              std::vector<Tensor> memories, uint64_t memory_limit);
  ~MemoryTexts() override;

  uint32_t vocabulary() const override { return decoder_.vocabulary; }
  uint32_t context() const override { return decoder_.context; }
  void begin(uint32_t rows) override;
  std::span<const float> prompt(std::span<const uint32_t> ids, size_t also_behind) override;
  std::span<const float> step(std::span<const uint32_t> tokens,
                              std::span<const uint32_t> parents) override;
  /// Cross-attention probabilities of a text, (layers, heads, tokens, positions), by a pass of
  /// their own. logits: set to those behind each token, (tokens, vocabulary); null: not read.
  std::vector<float> cross_attention(std::span<const uint32_t> tokens,
                                     std::vector<float>* logits = nullptr);
  /// Frees programs and caches. Texts that were begun end.
  void trim();
  /// Throws ModelError where an id is not one of the model's.
  void check_ids(std::span<const uint32_t> ids) const;

 private:
  struct Steps;
  struct Prompt;
  struct Pass;

  Steps& steps(uint32_t rows);
  Prompt& prompt_program(uint32_t length);
  Pass& pass(uint32_t length);
  uint32_t positions() const { return static_cast<uint32_t>(memories_.front().shape[1]); }
  std::span<const float> read_logits(const Program& program, const Tensor& logits);

  Device& device_;
  const Weights& weights_;
  const TextDecoder& decoder_;
  std::vector<Tensor> memories_;
  uint64_t memory_limit_;
  std::map<uint32_t, std::unique_ptr<Steps>> steps_;  // by rows
  std::list<std::unique_ptr<Pass>> passes_;           // most recently used first
  Steps* running_ = nullptr;
  std::vector<float> logits_;
};

}  // namespace mulciber
