// The network's part: a model that processes a text a little in every frame, and the attention maps
// of every step, computed and copied into images in the same command buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/viewer/frames.h"
#include "apps/viewer/heat_maps.h"

namespace mulciber::viewer {

/// The tokens that a step has chosen so far.
struct Hypothesis {
  std::vector<uint32_t> ids;
  std::vector<std::string> tokens;
  float score = 0;
};
/// The hypotheses of a step: the one that is shown, and the other beams.
using Step = std::vector<Hypothesis>;

struct SessionOptions {
  uint32_t beams = 4;
  uint32_t max_new_tokens = 48;  // for a language model
};

class Session {
 public:
  Session(graphics::Device& device, Frames& frames, const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Loads a model in place of the present one. Throws what loading throws; the present model then
  /// stays.
  void load(const std::string& path,
            const std::function<void(uint64_t done, uint64_t total)>& progress);
  /// Begins a text, and drops the one under way.
  void start(const std::string& text);
  /// Requests the maps of this step's first hypothesis, where the images do not have them.
  void show(size_t step);

  /// Takes the results of the frame that had this slot before.
  void completed(size_t slot);
  /// Records the next slice, and behind it copies of maps.
  void record(VkCommandBuffer commands, size_t slot, double budget_us);

  /// Whether nothing is under way any more.
  bool idle() const { return !writing() && !mapping_ && !next_; }
  bool writing() const { return translation_task_ || generation_task_; }
  bool continues() const { return generator_ != nullptr; }  // whether it is a language model
  const std::string& model_name() const { return model_name_; }
  const std::vector<MapKind>& kinds() const { return kinds_; }
  const HeatMaps& maps() const { return maps_; }
  const std::vector<Step>& steps() const { return steps_; }
  /// Whether the images have the rows of this step.
  bool has_maps_of(size_t step) const;
  const std::string& result() const { return result_; }
  /// Tokens of a map's rows and columns at a step.
  std::vector<std::string> queries(AttentionKind kind, size_t step) const;
  std::vector<std::string> keys(AttentionKind kind, size_t step) const;
  /// How many rows of a map belong to steps up to this one.
  uint32_t rows(AttentionKind kind, size_t step) const;

 private:
  struct Slice {
    FrameTask* task = nullptr;
    uint64_t number = 0;
  };

  void give_up();
  void forget();
  void take_models(std::unique_ptr<Translator> translator,
                   std::unique_ptr<TextGenerator> generator);
  /// Adapts the slices to the steps that ended in the last one: of several steps only the last is
  /// known.
  void keep_pace(size_t steps);
  void note_translation();
  void note_generation();
  Hypothesis prefix(const Hypothesis& whole, size_t tokens) const;
  /// Computes the maps of a hypothesis, once those under way are done.
  void map(const Hypothesis& hypothesis);
  void reserve(const Hypothesis& hypothesis, uint32_t room);

  graphics::Device& device_;
  Frames& frames_;
  SessionOptions options_;
  std::shared_ptr<Device> network_device_;
  std::string model_name_;
  std::unique_ptr<Translator> translator_;  // one of the two is set
  std::unique_ptr<TextGenerator> generator_;
  std::vector<MapKind> kinds_;
  HeatMaps maps_;

  std::unique_ptr<TranslationTask> translation_task_;  // one is set while a text is written
  std::unique_ptr<GenerationTask> generation_task_;
  std::unique_ptr<AttentionTask> attention_;
  uint32_t room_ = 0;     // tokens that attention_ can be restarted with
  bool mapping_ = false;  // attention_ is computing
  bool copied_ = false;   // its maps were copied into the images since it was restarted
  std::array<Slice, Frames::kInFlight> slices_;
  double pace_us_ = 0;                // time of a slice in which about one step ends
  std::vector<uint32_t> source_ids_;  // the prompt's too
  std::vector<std::string> source_;
  Hypothesis computing_;              // with which attention_ was restarted
  std::optional<Hypothesis> next_;    // with which attention_ will be restarted
  std::optional<Hypothesis> mapped_;  // whose maps the images have
  std::vector<Step> steps_;
  std::string result_;
};

}  // namespace mulciber::viewer
