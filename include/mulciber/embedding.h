// Mulciber inside a Vulkan application: it uses the application's device, queue, memory and command
// buffers. docs/guide/embedding.md is the guide. This interface calls no loader, reads no
// environment, starts no threads, and touches no file that it is not given. Errors are the types of
// mulciber/error.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mulciber/application_device.h"
#include "mulciber/open_model.h"
#include "mulciber/text_encoder.h"
#include "mulciber/text_generator.h"
#include "mulciber/translator.h"

namespace mulciber {

/// An extension, feature, queue, limit or memory that Mulciber needs or can use.
struct Requirement {
  enum class Kind { kExtension, kFeature, kQueue, kLimit, kMemory };
  Kind kind = Kind::kFeature;
  std::string name;  // "VK_KHR_cooperative_matrix", "shaderFloat16", "maxStorageBufferRange"
  bool required = false;
  bool available = false;
  std::string brings;  // what it is for, or what is lost without it
};

/// Feature structures for VkDeviceCreateInfo::pNext.
struct FeatureStructures;

struct Requirements {
  std::vector<Requirement> list;
  /// Names of the available extensions, for ppEnabledExtensionNames.
  std::vector<std::string> extensions;
  /// A chain of the available features. Pass it to vkCreateDevice, or set the same features in the
  /// application's own chain by enable(). It lives as long as `structures`.
  const VkPhysicalDeviceFeatures2* features = nullptr;
  std::shared_ptr<const FeatureStructures> structures;
  /// The first queue family that supports compute.
  uint32_t queue_family = 0;
  /// Device memory of the model, if one was given: weights, KV cache, activations. A translator's
  /// are those of one text of GeneratorOptions::context tokens and a translation as long, with the
  /// settings of its files. For encoders the weights alone are counted.
  MemoryPrediction memory;
  /// Why the model cannot run here; empty: it can.
  std::vector<std::string> obstacles;
  bool fits() const { return obstacles.empty(); }
};

/// Returns what Mulciber asks of a device. Call it before vkCreateDevice.
MULCIBER_API Requirements requirements(const ApplicationPhysicalDevice& application);
/// Also checks whether a model fits: its memory against the memory that the process may use now.
MULCIBER_API Requirements requirements(const ApplicationPhysicalDevice& application,
                                       const OpenModel& model,
                                       const GeneratorOptions& options = {});

/// A feature that a chain has no structure for.
struct UnplacedFeature {
  std::string name;                     // "shaderFloat16"
  std::vector<std::string> structures;  // those that can hold it, each of which suffices
};

/// Sets the features of `requirements` in an application's chain for VkDeviceCreateInfo::pNext, in
/// the structures of single features and in those of Vulkan 1.1, 1.2 and 1.3. Features that are set
/// already stay. Returns those for which the chain has no structure: the application adds one and
/// calls this again, or does without. Requirements::extensions must be enabled too. Throws
/// SettingError where `features` is null.
MULCIBER_API std::vector<UnplacedFeature> enable(const Requirements& requirements,
                                                 VkPhysicalDeviceFeatures2* features);

/// A part of a task that is recorded or submitted at once.
struct FrameSlice {
  uint64_t number = 0;      // 1 is a task's first; 0: there was nothing to do
  uint32_t dispatches = 0;  // compute dispatches
  double estimated_us = 0;  // on the device
};

/// Barriers at the beginning and end of every slice, for applications that track synchronization.
struct FrameBorders {
  VkPipelineStageFlags waits_for_stages;  // stages of earlier work that a slice waits for
  VkAccessFlags waits_for_accesses;
  VkPipelineStageFlags shown_to_stages;  // stages of later work that sees the slice's writes
  VkAccessFlags shown_to_accesses;
};

/// Semaphores that a submission waits for and signals. Values are those of timeline semaphores;
/// binary semaphores ignore them.
struct FrameSemaphores {
  struct Wait {
    VkSemaphore semaphore;
    VkPipelineStageFlags stage;
    uint64_t value = 0;
  };
  struct Signal {
    VkSemaphore semaphore;
    uint64_t value = 0;
  };
  std::vector<Wait> waits;
  std::vector<Signal> signals;
};

struct FrameStep {
  FrameSlice slice;    // number 0: nothing was submitted, no semaphore of the call was used
  bool waits = false;  // nothing was submitted, because earlier slices still run
  /// A timeline semaphore that reaches `value` when the slice has ended. Null where
  /// timelineSemaphore is not enabled.
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t value = 0;
};

/// Work on a device that runs in slices, a little in every frame. The constructor allocates memory,
/// builds programs and compiles pipelines. Later calls do not allocate device memory, compile or
/// wait, unless they say so. Work may be cut inside layers; where it is cut changes no bit of the
/// result.
///
/// A task runs in one of two ways, and may change from one to the other while none of its slices is
/// under way; SettingError otherwise:
///  - record() into the application's command buffers, which the application submits, and
///  completed();
///  - step(), which submits by itself to the device's queue, and wait().
///
/// Not thread-safe. A task keeps its model and device alive. The destructor waits for slices that
/// step() submitted. Slices that record() recorded should have ended and have been reported to
/// completed(), or have been discarded. Otherwise they may still run, and what they use is kept
/// until the device is destroyed: by then they must have ended. The context of a generator whose
/// task is kept so stays taken.
class MULCIBER_API FrameTask {
 public:
  virtual ~FrameTask();
  FrameTask(const FrameTask&) = delete;
  FrameTask& operator=(const FrameTask&) = delete;

  /// Records dispatches that are expected to take `budget_us` of device time, at least one while
  /// any is left. commands: outside of render passes, from the queue family of the
  /// ApplicationQueue. Slices must run in the order of their numbers, each once, on one queue or
  /// separated by semaphores; discard() takes back what will not run. A slice begins with a barrier
  /// that waits for earlier compute shaders and transfers, and ends with one that makes its writes
  /// visible to compute shaders, transfers and the CPU: no other barrier is needed. It binds a
  /// compute pipeline and its descriptors, sets push constants, and writes timestamps into queries
  /// of its own, by which completed() corrects the estimates of later slices. After a task's first
  /// call no CPU memory is allocated, except where more than 16 slices are under way, and where a
  /// model whose layers all have sliding windows gives back pages of its cache.
  FrameSlice record(VkCommandBuffer commands, double budget_us);
  static FrameBorders borders();
  /// Tells the task that slices up to this number have ended, which the application knows by a
  /// fence or a semaphore. Reads their results and calls the callbacks of the task's options.
  /// Numbers may come late and leave some out: 0 and numbers at or below an earlier one change
  /// nothing. Slices of step() need no report; those that still run are left alone. Throws
  /// SettingError for a number that no slice has, or whose slice was discarded, and what the
  /// model's own functions and the callbacks throw.
  void completed(uint64_t number);
  /// Takes back a slice whose command buffer will never be submitted, because its frame was
  /// dropped, and every slice that was recorded after it. The task goes on where the slice began:
  /// the next record() records its work again, and changes no bit of the result. Nothing that was
  /// discarded may be submitted afterwards; copies that were recorded into the same command buffer
  /// must be recorded again too. Numbers are not used again: the next slice has a new one. Throws
  /// SettingError for slices that were never recorded, are completed, were discarded before, or
  /// were submitted by step().
  void discard(uint64_t number);

  /// Reads the results of slices that have ended, as completed() does, and submits dispatches that
  /// are expected to take `budget_us`, judged by measured times of dispatches, and at most
  /// DeviceOptions::submission_ms. Throws DeviceError when a submission fails, and what the
  /// application's functions throw: nothing was submitted then, and the next step() submits that
  /// work again, unless the device is lost.
  FrameStep step(double budget_us, const FrameSemaphores& semaphores = {});
  /// Waits for the slices that step() submitted, and reads their results.
  void wait();
  /// Waits for at most `timeout_ns` nanoseconds; 0 only looks. Returns whether they have ended, and
  /// reads the results of those that have.
  bool wait(uint64_t timeout_ns);

  /// True when nothing is left to do and every slice has ended.
  bool done() const;
  /// Begins nothing new; done() is true once running slices have ended.
  virtual void cancel();

 protected:
  struct Impl;
  explicit FrameTask(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A hypothesis of a running beam search.
struct Beam : Alternative {
  bool finished = false;  // it has ended
};

/// A running translation of one text. A translator can have several at once.
class MULCIBER_API TranslationTask : public FrameTask {
 public:
  /// Throws as Translator::translate(). options.attention and options.cancel are ignored.
  TranslationTask(Translator& translator, const std::string& text,
                  const TranslateOptions& options = {});
  /// Takes ids of a source, as Translator::translate_ids() does.
  TranslationTask(Translator& translator, const std::vector<uint32_t>& source_ids,
                  const TranslateOptions& options = {});
  ~TranslationTask() override;

  /// Decode steps that have ended. text(), so_far() and beams() may change with each step, earlier
  /// tokens included.
  uint32_t steps() const;
  /// Text of the best hypothesis so far.
  std::string text() const;
  /// The best unfinished hypothesis, or the best finished one when all have ended, as a Translation
  /// that AttentionTask takes: source, text, ids, tokens, and the score that it would have if it
  /// ended here. `complete` is false, and alternatives are empty.
  Translation so_far() const;
  /// All hypotheses: the finished ones, at most as many as beams, then the unfinished ones, which
  /// have steps() ids each. Both parts are sorted, best first.
  std::vector<Beam> beams() const;
  /// Returns what Translator::translate() gives for that text. The task must be done. `complete` is
  /// false when it was cancelled. Throws ModelError when logits were not finite.
  Translation result();

 private:
  struct Work;
  explicit TranslationTask(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

enum class AttentionKind { kEncoder, kDecoder, kCross };

/// Names one of a model's attention maps, which have a row for each query and a column for each
/// key.
struct AttentionMap {
  AttentionKind kind = AttentionKind::kCross;
  uint32_t layer = 0, head = 0;  // AttentionTask::layers() and heads() say how many there are
};

/// Tokens of the longest texts that an AttentionTask is restarted with; 0: as many as the first
/// text has. Numbers above the model's maximum mean that maximum.
struct AttentionRoom {
  uint32_t source = 0, target = 0;
};

/// Computes the attention maps of a translation or of a language model's text, by one pass of the
/// network over its tokens. They stay on the device until the task is restarted or destroyed, and
/// can be copied into the application's images and buffers from the frame that records the last
/// slice on. A model can have several such tasks at once, also beside a task that extends the text.
class MULCIBER_API AttentionTask : public FrameTask {
 public:
  /// Computes maps of all kinds that the model has, see AttentionMaps. translation: of this
  /// translator, whole or TranslationTask::so_far(). head_masks: the masks that it was made with.
  /// Throws ModelError when it has no ids, or ids outside the vocabulary.
  AttentionTask(Translator& translator, const Translation& translation,
                const HeadMasks& head_masks = {}, const AttentionRoom& room = {});
  /// Computes maps of kDecoder, see TokenAttention. text: prompt_ids and ids of a text of this
  /// model, whole or GenerationTask::so_far(). room: tokens of the longest text. Throws ModelError
  /// when there are no ids, ids outside the vocabulary, or more weights than kMostAttentionWeights
  /// for `room` tokens.
  AttentionTask(TextGenerator& generator, const Generation& text, uint32_t room = 0);
  ~AttentionTask() override;

  /// Starts the task again for another text, for instance the same one some tokens later, without
  /// allocating device memory or compiling. The task must be done. Slice numbers go on; copies of
  /// the earlier maps must come earlier in the queue. Passes are built for a few lengths up to the
  /// room, so that the pass of a short text is at most twice as long as the text. Throws as the
  /// constructor does, and SettingError for texts longer than the room or a task that is not done.
  void restart(const Translation& translation);
  void restart(const Generation& text);

  /// True once the last slice was recorded, or submitted by step(), until it is discarded: copies
  /// of the maps can be recorded then.
  bool recorded() const;
  /// Layers and heads of a kind of map; 0: the model has no such maps.
  uint32_t layers(AttentionKind kind) const;
  uint32_t heads(AttentionKind kind) const;
  /// Extent of a map: the width counts keys, the height queries. Throws SettingError for a kind
  /// that the model does not have.
  VkExtent2D extent(AttentionKind kind) const;
  /// Records a copy of a map into an image, a texel for each probability, query 0 in the first row.
  /// commands: outside of render passes, after the last slice, in the same command buffer or in one
  /// that runs later in that queue. Neither allocates nor waits; the task must outlive the copy.
  /// Throws SettingError before the last slice, for layers and heads that do not exist, and for
  /// images of other formats or that are too small.
  void record_attention(VkCommandBuffer commands, const ApplicationImage& to,
                        const AttentionMap& map);
  /// Records a copy of a map into a buffer: floats, row after row, without padding.
  void record_attention(VkCommandBuffer commands, const ApplicationBuffer& to,
                        const AttentionMap& map);

 private:
  struct Work;
  explicit AttentionTask(std::unique_ptr<Work> work);
  void require_recorded() const;
  void require_done() const;
  std::unique_ptr<Work> work_;
};

/// Computes the embedding of one text. The embedding and the hidden states that it is pooled from
/// stay on the device until the task is destroyed. An encoder can have several tasks at once.
class MULCIBER_API EmbeddingTask : public FrameTask {
 public:
  /// Throws as TextEncoder::embed(), and SettingError for options.dimensions.
  EmbeddingTask(TextEncoder& encoder, const std::string& text, const EmbedOptions& options = {});
  /// Takes token embeddings instead of a text: rows of TextEncoder::embedding_width() floats, those
  /// of special tokens included. Position and type embeddings (type 0) are added to them as to rows
  /// of the model's own table. The first slice copies them from a buffer made with
  /// VK_BUFFER_USAGE_TRANSFER_SRC_BIT, after compute shaders and transfers that wrote them earlier
  /// in the queue. `stages`, `accesses`, `queue_family` and prompts are ignored.
  EmbeddingTask(TextEncoder& encoder, const ApplicationBuffer& embeddings, uint32_t tokens,
                const EmbedOptions& options = {});
  ~EmbeddingTask() override;

  uint32_t tokens() const;
  /// True once the last slice was recorded, or submitted by step(): copies can be recorded then.
  bool recorded() const;
  /// Records a copy of the embedding: TextEncoder::width() floats. The rules are those of
  /// AttentionTask::record_attention().
  void record_vector(VkCommandBuffer commands, const ApplicationBuffer& to);
  /// Records a copy of the hidden states after the last layer: (tokens(), width()) floats.
  void record_states(VkCommandBuffer commands, const ApplicationBuffer& to);
  /// Returns what TextEncoder::embed() gives for that text. The task must be done. `complete` is
  /// false when it was cancelled. Throws ModelError when the embedding is not finite.
  TextVector result();

 private:
  struct Work;
  static std::unique_ptr<Work> of_text(TextEncoder& encoder, const std::string& text,
                                       const EmbedOptions& options);
  static std::unique_ptr<Work> of_embeddings(TextEncoder& encoder,
                                             const ApplicationBuffer& embeddings, uint32_t tokens,
                                             const EmbedOptions& options);
  explicit EmbeddingTask(std::unique_ptr<Work> work);
  void require_recorded() const;
  std::unique_ptr<Work> work_;
};

/// A part of a prompt: a text, or the application's embeddings in place of tokens.
struct PromptPart {
  std::string text;
  /// Used where `tokens` is not 0: `tokens` rows of TextGenerator::width() floats, scaled as the
  /// rows of the embedding table are after the model's multiplier; learned position embeddings are
  /// added to them. Slices copy them from a buffer made with VK_BUFFER_USAGE_TRANSFER_SRC_BIT,
  /// after compute shaders and transfers that wrote them earlier in the queue. The buffer must not
  /// change until the task's first token. `stages`, `accesses` and `queue_family` are ignored.
  ApplicationBuffer embeddings;
  uint32_t tokens = 0;
};

/// Buffers of the application's that a GenerationTask writes.
struct GenerationOutputs {
  /// Logits that each token was chosen from, TextGenerator::vocabulary() floats a row: after the
  /// penalties of Sampling, before temperature and filters. Token i of the completion writes row i
  /// modulo the number of rows that fit `size`, at least one. A row is complete when the slice that
  /// ends the step has ended, and visible like all writes of slices. Steps that began before the
  /// end was known write rows too, at most 4 after the last token. `stages`, `accesses` and
  /// `queue_family` are ignored.
  ApplicationBuffer logits;
  /// Hidden states of prompt and completion after the last norm, which the output projection reads:
  /// TextGenerator::width() floats a row. Token i of prompt and completion together writes row i
  /// modulo the number of rows that fit `size`, at least one. The rules of logits hold. No prefix
  /// of the prompt is reused then. The token chosen last has no row.
  ApplicationBuffer states;
};

/// A running completion of a TextGenerator. A generator has one task at a time, and nothing else
/// can use it until the task is destroyed.
class MULCIBER_API GenerationTask : public FrameTask {
 public:
  /// Throws as TextGenerator::generate(), and SettingError for options.shift, options.attention and
  /// generators of several sequences. With options.grammar a step begins only after the previous
  /// one has ended, because the mask of allowed tokens depends on its token.
  GenerationTask(TextGenerator& generator, const std::string& prompt,
                 const GenerateOptions& options = {}, const GenerationOutputs& outputs = {});
  /// Takes a prompt in parts, each tokenized by itself; options.add_special applies to the first
  /// part. Embeddings appear in prompt_ids of the results as kNoTokenId. A later prompt can reuse
  /// the prefix before the first embeddings.
  GenerationTask(TextGenerator& generator, const std::vector<PromptPart>& prompt,
                 const GenerateOptions& options = {}, const GenerationOutputs& outputs = {});
  ~GenerationTask() override;

  void cancel() override;
  /// Tokens of the completion that are known.
  size_t tokens() const;
  /// Text of a token, see TextGenerator::token_text().
  std::string token_text(uint32_t id) const;
  /// Prompt and completion so far. Their `end` is kCancelled until result() was called.
  Generation so_far() const;
  /// Returns what TextGenerator::generate() gives for that prompt. The task must be done. Throws
  /// ModelError when logits were not finite, and when the grammar allowed none of the model's
  /// tokens.
  Generation result();

 private:
  struct Work;
  explicit GenerationTask(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

}  // namespace mulciber
