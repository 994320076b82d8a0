// Mulciber inside a Vulkan application: on the host's device, in its queue, with its memory, in its
// command buffers. docs/guide/embedding.md is the guide. Calls no loader, reads no environment,
// starts no threads, and touches no file that it is not given. Errors are the types of
// mulciber/error.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mulciber/host_device.h"
#include "mulciber/open_model.h"
#include "mulciber/text_encoder.h"
#include "mulciber/text_generator.h"
#include "mulciber/translator.h"

namespace mulciber {

/// Something to enable, or to have, at vkCreateDevice.
struct Requirement {
  enum class Kind { kExtension, kFeature, kQueue, kLimit, kMemory };
  Kind kind = Kind::kFeature;
  std::string name;  // "VK_KHR_cooperative_matrix", "shaderFloat16", "maxStorageBufferRange"
  bool required = false;
  bool available = false;
  std::string brings;  // what it is for, or what is missed without it
};

/// Feature structures for VkDeviceCreateInfo::pNext.
struct FeatureStructures;

struct Requirements {
  std::vector<Requirement> list;
  /// Of these, the extensions that are there: names for ppEnabledExtensionNames.
  std::vector<std::string> extensions;
  /// A chain of the features that are there, to be given to vkCreateDevice as it is, or copied into
  /// the host's own. Lives as long as `structures`.
  const VkPhysicalDeviceFeatures2* features = nullptr;
  std::shared_ptr<const FeatureStructures> structures;
  /// The first queue family that computes.
  uint32_t queue_family = 0;
  /// Device memory of the model, where one was given: weights, keys and values, activations.
  MemoryPrediction memory;
  /// Why the model cannot run here; empty: it can.
  std::vector<std::string> obstacles;
  bool fits() const { return obstacles.empty(); }
};

/// What Mulciber asks of a device, before the host creates it.
MULCIBER_API Requirements requirements(const HostPhysicalDevice& host);
/// And whether a model fits it: its memory against what the process may use now.
MULCIBER_API Requirements requirements(const HostPhysicalDevice& host, const OpenModel& model,
                                       const GeneratorOptions& options = {});

/// A part of a task that runs at once.
struct FrameSlice {
  uint64_t number = 0;      // 1 is a task's first; 0: there was nothing to do
  uint32_t dispatches = 0;  // of compute shaders
  double estimated_us = 0;  // on the device
};

/// The barriers at the borders of every slice, where a host must know them.
struct FrameBorders {
  VkPipelineStageFlags waits_for_stages;  // of earlier work: a slice begins behind it
  VkAccessFlags waits_for_accesses;
  VkPipelineStageFlags shown_to_stages;  // of later work, which sees what the slice wrote
  VkAccessFlags shown_to_accesses;
};

/// What a submission waits for and tells. Values are of timeline semaphores and ignored for others.
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
  FrameSlice slice;    // number 0: nothing was submitted, nor any semaphore of the call used
  bool waits = false;  // nothing was, because earlier slices have not ended
  /// A timeline semaphore of the device's, which reaches `value` when the slice has ended. Null
  /// where timelineSemaphore is not enabled.
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t value = 0;
};

/// Work on a device that goes on in slices, a little in every frame. Making a task makes what it
/// needs: memory, programs, pipelines. From then on nothing is allocated, compiled or waited for,
/// but where it says so. Where work is cut, inside of layers too, changes no bit of the result.
///
/// There are two ways, of which a task takes one:
///  - record() into the host's command buffers, which the host submits, and completed();
///  - step(), which submits by itself to the device's queue.
///
/// One thread at a time. A task keeps what it needs of its model and the device. Destroying it
/// waits for slices that step() submitted; those that record() recorded must have ended, or never
/// be submitted, and completed() been told: builds without NDEBUG check that.
class MULCIBER_API FrameTask {
 public:
  virtual ~FrameTask();
  FrameTask(const FrameTask&) = delete;
  FrameTask& operator=(const FrameTask&) = delete;

  /// Records what is expected to fit `budget_us` of the device's time, outside of render passes,
  /// and at least one dispatch where any is left. Slices must run in the order of their numbers,
  /// each once, on one queue or parted by semaphores; `commands` are of the queue family that was
  /// lent. A slice begins with a barrier that waits for compute shaders and transfers before it,
  /// and ends with one that shows what it wrote to compute shaders, transfers and the host: no
  /// other is needed at its borders. Binds a pipeline and descriptors of the compute bind point,
  /// and push constants, and writes timestamps into queries of its own, by which completed()
  /// corrects what is expected of the next slices.
  FrameSlice record(VkCommandBuffer commands, double budget_us);
  static FrameBorders borders();
  /// The host knows, by a fence or a semaphore, that slices up to this number have ended. Takes
  /// note of what they chose; callbacks of the task's options are called from here. Throws what the
  /// model's own calls throw, and what the callbacks do.
  void completed(uint64_t number);

  /// Takes note of slices that have ended, as completed(), and submits what is expected to fit
  /// `budget_us`, by the times that dispatches took before, but never more than
  /// DeviceOptions::submission_ms. Throws DeviceError where a submission fails.
  FrameStep step(double budget_us, const FrameSemaphores& semaphores = {});
  /// Waits for the slices that step() submitted, and takes note of them.
  void wait();

  /// Nothing is left to do, and every slice has ended.
  bool done() const;
  /// Nothing new is begun; done() once slices under way have ended.
  virtual void cancel();

 protected:
  struct Impl;
  explicit FrameTask(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A hypothesis of a translation under way: one of the branches of its search.
struct Beam : Alternative {
  bool finished = false;  // nothing is added to it
};

/// A text on its way through a Translator. Several may be under way on one translator.
class MULCIBER_API TranslationTask : public FrameTask {
 public:
  /// Throws as Translator::translate(). options.attention and options.cancel are not looked at.
  TranslationTask(Translator& translator, const std::string& text,
                  const TranslateOptions& options = {});
  ~TranslationTask() override;

  /// Steps of decoding that have ended. With each of them what follows may change, also in what it
  /// said before.
  uint32_t steps() const;
  /// What the best hypothesis says so far.
  std::string text() const;
  /// The best hypothesis that goes on, and once none does the best of all, as a Translation that
  /// AttentionTask takes: source, text, ids, tokens, and the score that it would have if it ended
  /// here. `complete` is false, and there are no alternatives.
  Translation so_far() const;
  /// All hypotheses: the finished ones, at most as many as beams, then those that go on, which
  /// all have steps() ids; both best first.
  std::vector<Beam> beams() const;
  /// Of a task that is done: what Translator::translate() gives for that text. `complete` is false
  /// when it was cancelled. Throws ModelError where logits were not finite.
  Translation result();

 private:
  struct Work;
  explicit TranslationTask(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

enum class AttentionKind { kEncoder, kDecoder, kCross };

/// One of a model's attention maps: a row for each query, a column for each key.
struct AttentionMap {
  AttentionKind kind = AttentionKind::kCross;
  uint32_t layer = 0, head = 0;  // AttentionTask::layers() and heads() say how many there are
};

/// Tokens of the longest texts that an AttentionTask is restarted with; 0: as many as the first
/// text has. What is more than the model takes at most is as that.
struct AttentionRoom {
  uint32_t source = 0, target = 0;
};

/// The attention maps of a translation, or of a language model's text, on the device, by one pass
/// of the network over its tokens. They stay there until the task is restarted or destroyed, and
/// can be copied into images and buffers of the host's in any frame from the one on that records
/// the last slice. Several may be under way on one model, also beside a task that adds to the text.
class MULCIBER_API AttentionTask : public FrameTask {
 public:
  /// Maps of all kinds that the model has, as AttentionMaps holds them. translation: of this
  /// translator, whole or TranslationTask::so_far(). head_masks: those it was made with. Throws
  /// ModelError where its ids are not the model's, or there are none.
  AttentionTask(Translator& translator, const Translation& translation,
                const HeadMasks& head_masks = {}, const AttentionRoom& room = {});
  /// Of kDecoder, as TokenAttention holds them: prompt_ids and ids of a text of this model, whole
  /// or GenerationTask::so_far(). room: tokens of the longest text. Throws ModelError where its ids
  /// are not the model's, there are none, or `room` of them take more than kMostAttentionWeights.
  AttentionTask(TextGenerator& generator, const Generation& text, uint32_t room = 0);
  ~AttentionTask() override;

  /// The maps of another text, such as the same one some tokens later: neither allocates memory of
  /// the device's nor compiles. Of a task that is done, which begins again; slices keep counting,
  /// and copies of the maps before run earlier in the queue. Passes are built for a few lengths up
  /// to the room, so that a short text takes no more than twice its own. Throws as the constructor
  /// does, and SettingError for texts that there is no room for or tasks that are not done.
  void restart(const Translation& translation);
  void restart(const Generation& text);

  /// The last slice was recorded, or submitted by step(): the maps can be.
  bool recorded() const;
  /// Of a kind of map; 0: the model has none.
  uint32_t layers(AttentionKind kind) const;
  uint32_t heads(AttentionKind kind) const;
  /// Width: keys; height: queries. Throws SettingError for a kind that the model does not have.
  VkExtent2D extent(AttentionKind kind) const;
  /// Records a copy of a map into an image, a texel for each probability: query 0 in the first row.
  /// Behind the last slice, in the same command buffer or in one that runs later in that queue, and
  /// outside of render passes. Neither allocates nor waits; the task must outlive the copy. Throws
  /// SettingError before that slice, for layers and heads that are not there, images of other
  /// formats or that are too small.
  void record_attention(VkCommandBuffer commands, const HostImage& to, const AttentionMap& map);
  /// The same into a buffer: floats, row after row, without padding.
  void record_attention(VkCommandBuffer commands, const HostBuffer& to, const AttentionMap& map);

 private:
  struct Work;
  explicit AttentionTask(std::unique_ptr<Work> work);
  void require_recorded() const;
  void require_done() const;
  std::unique_ptr<Work> work_;
};

/// The vector of a text on its way through a TextEncoder. It and the states that it is made of stay
/// on the device until the task is destroyed. Several may be under way on one encoder.
class MULCIBER_API EmbeddingTask : public FrameTask {
 public:
  /// Throws as TextEncoder::embed().
  EmbeddingTask(TextEncoder& encoder, const std::string& text, const EmbedOptions& options = {});
  /// Of the embeddings of tokens in place of a text: rows of TextEncoder::embedding_width() floats,
  /// to which positions and types (all 0) are added as to those of the model's own table, special
  /// tokens included. The first slice copies them from a buffer made with
  /// VK_BUFFER_USAGE_TRANSFER_SRC_BIT, behind compute shaders and transfers that wrote them earlier
  /// in the queue; `stages`, `accesses` and `queue_family` are not looked at, nor is a prompt.
  EmbeddingTask(TextEncoder& encoder, const HostBuffer& embeddings, uint32_t tokens,
                const EmbedOptions& options = {});
  ~EmbeddingTask() override;

  uint32_t tokens() const;
  /// The last slice was recorded, or submitted by step(): copies can be.
  bool recorded() const;
  /// Records a copy of the vector: TextEncoder::width() floats. Rules as those of
  /// AttentionTask::record_attention().
  void record_vector(VkCommandBuffer commands, const HostBuffer& to);
  /// The states after the last layer: (tokens(), width()).
  void record_states(VkCommandBuffer commands, const HostBuffer& to);
  /// Of a task that is done: what TextEncoder::embed() gives for that text. `complete` is false
  /// when it was cancelled. Throws ModelError where the vector is not finite.
  TextVector result();

 private:
  struct Work;
  static std::unique_ptr<Work> of_text(TextEncoder& encoder, const std::string& text,
                                       const EmbedOptions& options);
  static std::unique_ptr<Work> of_embeddings(TextEncoder& encoder, const HostBuffer& embeddings,
                                             uint32_t tokens, const EmbedOptions& options);
  explicit EmbeddingTask(std::unique_ptr<Work> work);
  void require_recorded() const;
  std::unique_ptr<Work> work_;
};

/// A part of a prompt: a text, or embeddings of the host's in place of tokens.
struct PromptPart {
  std::string text;
  /// Where `tokens` is not 0: so many rows of TextGenerator::width() floats in place of a text, as
  /// the model's table and its multiplier give them: learned positions are added to them. Slices
  /// copy them from a buffer made with VK_BUFFER_USAGE_TRANSFER_SRC_BIT, behind compute shaders and
  /// transfers that wrote them earlier in the queue; it stays as it is until the task's first
  /// token. `stages`, `accesses` and `queue_family` are not looked at.
  HostBuffer embeddings;
  uint32_t tokens = 0;
};

/// What a GenerationTask leaves in memory of the host's.
struct GenerationOutputs {
  /// After each step the logits that its token was chosen from, TextGenerator::vocabulary() floats:
  /// with the penalties of Sampling in them, before temperature and filters. Those of token i of
  /// the answer go into row i modulo the number of rows that fit `size`; at least one must. They
  /// are there when the slice has ended that a step ends in, shown as everything that slices write.
  /// Steps that were begun before the end was known write rows too, at most 4 behind the last.
  /// `stages`, `accesses` and `queue_family` are not looked at.
  HostBuffer logits;
  /// The hidden states of prompt and answer: of each token TextGenerator::width() floats, as they
  /// are after the last norm, where logits are made of them. Those of token i of both together go
  /// into row i modulo the number of rows that fit `size`; at least one must. By the same rules.
  /// The prompt is computed from its first token on then. The token chosen last has none.
  HostBuffer states;
};

/// An answer of a TextGenerator on its way. One at a time for each generator, which does nothing
/// else until the task is destroyed.
class MULCIBER_API GenerationTask : public FrameTask {
 public:
  /// Throws as TextGenerator::generate(), and SettingError for options.shift, options.attention
  /// and generators of several sequences. With options.grammar a step is begun once it is known
  /// that the one before has ended: what may come next follows from its token.
  GenerationTask(TextGenerator& generator, const std::string& prompt,
                 const GenerateOptions& options = {}, const GenerationOutputs& outputs = {});
  /// Of a prompt in parts, each tokenized by itself; options.add_special is of the first. In
  /// prompt_ids of its results embeddings are kNoTokenId. A later prompt shares with this one what
  /// stands before the first embeddings.
  GenerationTask(TextGenerator& generator, const std::vector<PromptPart>& prompt,
                 const GenerateOptions& options = {}, const GenerationOutputs& outputs = {});
  ~GenerationTask() override;

  void cancel() override;
  /// Of the answer that are known.
  size_t tokens() const;
  /// As TextGenerator::token_text().
  std::string token_text(uint32_t id) const;
  /// Prompt and answer as far as they are known. Its `end` is kCancelled until result() was called.
  Generation so_far() const;
  /// Of a task that is done: what TextGenerator::generate() gives for that prompt. Throws
  /// ModelError where logits were not finite, and where no token led on in the grammar.
  Generation result();

 private:
  struct Work;
  explicit GenerationTask(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

}  // namespace mulciber
