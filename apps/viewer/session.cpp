#include "apps/viewer/session.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace mulciber::viewer {
namespace {

constexpr uint32_t kSpareTokens = 16;  // beyond twice the source's length
constexpr double kFirstPace = 500;     // microseconds

std::string name_of_path(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  return (whole.has_filename() ? whole.filename() : whole.parent_path().filename()).string();
}

Hypothesis hypothesis_of(const Alternative& found) {
  return {found.ids, found.tokens, found.score};
}

bool begins_with(const std::vector<uint32_t>& whole, const std::vector<uint32_t>& part) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

}  // namespace

Session::Session(graphics::Device& device, Frames& frames, const SessionOptions& options)
    : device_(device),
      frames_(frames),
      options_(options),
      network_device_(adopt_device(device.lent(), options_from_environment())),
      maps_(device) {}

Session::~Session() { give_up(); }

void Session::give_up() {
  frames_.wait();  // slices that were recorded must have ended
  slices_ = {};
  translation_task_.reset();
  generation_task_.reset();
  attention_.reset();
  mapping_ = copied_ = false;
  next_.reset();
}

void Session::forget() {
  steps_.clear();
  mapped_.reset();
  source_.clear();
  source_ids_.clear();
  result_.clear();
  maps_.forget();
}

void Session::load(const std::string& path,
                   const std::function<void(uint64_t done, uint64_t total)>& progress) {
  const std::shared_ptr<const OpenModel> model = open_model(path);
  LoadOptions options;
  options.on_progress = progress;
  std::unique_ptr<Translator> translator;
  std::unique_ptr<TextGenerator> generator;
  if (std::filesystem::is_directory(path)) {
    try {
      translator = std::make_unique<Translator>(network_device_, model, options);
    } catch (const ModelError&) {  // it may be a language model, whose load names the fault
    }
  }
  if (!translator) {
    generator =
        std::make_unique<TextGenerator>(network_device_, model, GeneratorOptions{.load = options});
  }
  give_up();
  forget();
  model_name_ = name_of_path(path);
  take_models(std::move(translator), std::move(generator));
}

void Session::take_models(std::unique_ptr<Translator> translator,
                          std::unique_ptr<TextGenerator> generator) {
  translator_ = std::move(translator);
  generator_ = std::move(generator);
  kinds_.clear();
  if (generator_) return;  // the first AttentionTask knows the number of layers
  const ModelExtents extents = translator_->extents();
  for (const MapKind& kind :
       {MapKind{AttentionKind::kEncoder, "Encoder", extents.encoder_layers, extents.encoder_heads},
        MapKind{AttentionKind::kDecoder, "Decoder", extents.decoder_layers, extents.decoder_heads},
        MapKind{AttentionKind::kCross, "Cross", extents.cross_layers, extents.cross_heads}}) {
    if (kind.layers * kind.heads > 0) kinds_.push_back(kind);
  }
}

void Session::start(const std::string& text) {
  give_up();
  forget();
  pace_us_ = kFirstPace;
  if (translator_) {
    TranslateOptions options;
    options.beams = options.n_best = options_.beams;
    translation_task_ = std::make_unique<TranslationTask>(*translator_, text, options);
  } else {
    GenerateOptions options;
    options.max_new_tokens = options_.max_new_tokens;
    generation_task_ = std::make_unique<GenerationTask>(*generator_, text, options);
  }
}

void Session::completed(size_t slot) {
  const Slice slice = std::exchange(slices_[slot], {});
  if (slice.number > 0) slice.task->completed(slice.number);
  const bool wrote = slice.number > 0 && slice.task != attention_.get();
  const size_t steps = steps_.size();
  if (mapping_ && copied_ && attention_->done()) mapping_ = false;
  if (translation_task_) note_translation();
  if (generation_task_) note_generation();
  if (wrote) keep_pace(steps_.size() - std::min(steps, steps_.size()));
  if (!mapping_ && next_) map(*std::exchange(next_, std::nullopt));
}

void Session::keep_pace(size_t steps) {
  if (steps > 1) {
    pace_us_ /= static_cast<double>(steps);
  } else if (steps == 0) {
    pace_us_ *= 1.5;
  }
}

Hypothesis Session::prefix(const Hypothesis& whole, size_t tokens) const {
  const auto end = static_cast<ptrdiff_t>(std::min(tokens, whole.ids.size()));
  return {{whole.ids.begin(), whole.ids.begin() + end},
          {whole.tokens.begin(), whole.tokens.begin() + end}};
}

void Session::note_translation() {
  TranslationTask& task = *translation_task_;
  const bool done = task.done();
  if (task.steps() == steps_.size() && !done) return;
  const Translation best = done ? task.result() : task.so_far();
  result_ = best.text;
  source_ = best.source_tokens;
  source_ids_ = best.source_ids;
  if (best.ids.empty()) {  // nothing to translate
    if (done) translation_task_.reset();
    return;
  }
  const Hypothesis shown = {best.ids, best.tokens, best.score};
  // Where several steps ended in one slice only the last one is known; the others are its prefixes.
  while (steps_.size() + 1 < best.ids.size()) steps_.push_back({prefix(shown, steps_.size() + 1)});
  Step step = {shown};
  if (done) {
    for (const Alternative& other : best.alternatives) {
      if (other.ids != best.ids) step.push_back(hypothesis_of(other));
    }
    steps_.resize(best.ids.size());  // a shorter hypothesis may have won in the end
    steps_.back() = std::move(step);
    translation_task_.reset();
  } else {
    for (const Beam& other : task.beams()) {
      if (other.ids != best.ids && step.size() < 2 * size_t{options_.beams})
        step.push_back(hypothesis_of(other));
    }
    steps_.resize(task.steps());
    steps_.back() = std::move(step);
  }
  map(shown);
}

void Session::note_generation() {
  GenerationTask& task = *generation_task_;
  const bool done = task.done();
  const Generation text = done ? task.result() : task.so_far();
  if (done) generation_task_.reset();
  result_ = text.text;
  if (text.ids.size() == steps_.size() && !done) return;
  if (source_.empty()) {
    source_ids_ = text.prompt_ids;
    for (const uint32_t id : source_ids_) source_.push_back(generator_->token_text(id));
  }
  for (size_t i = steps_.size(); i < text.ids.size(); ++i) {
    Hypothesis next = steps_.empty() ? Hypothesis{} : steps_.back().front();
    next.ids.push_back(text.ids[i]);
    next.tokens.push_back(generator_->token_text(text.ids[i]));
    steps_.push_back({std::move(next)});
  }
  if (!steps_.empty()) map(steps_.back().front());
}

void Session::reserve(const Hypothesis& hypothesis, uint32_t room) {
  const auto prompt = static_cast<uint32_t>(source_ids_.size());
  attention_.reset();
  if (translator_) {
    Translation text;
    text.source_ids = source_ids_;
    text.ids = hypothesis.ids;
    attention_ =
        std::make_unique<AttentionTask>(*translator_, text, HeadMasks{}, AttentionRoom{0, room});
  } else {
    Generation text;
    text.prompt_ids = source_ids_;
    text.ids = hypothesis.ids;
    attention_ = std::make_unique<AttentionTask>(*generator_, text, prompt + room);
    kinds_ = {{AttentionKind::kDecoder, "Decoder", attention_->layers(AttentionKind::kDecoder),
               attention_->heads(AttentionKind::kDecoder)}};
  }
  room_ = room;
  for (const MapKind& kind : kinds_) {
    const bool encoder = kind.kind == AttentionKind::kEncoder,
               cross = kind.kind == AttentionKind::kCross;
    const uint32_t across = generator_ ? prompt + room : encoder || cross ? prompt : room;
    maps_.reserve(kind, {across, encoder || generator_ ? across : room});
  }
}

void Session::map(const Hypothesis& hypothesis) {
  const auto tokens = static_cast<uint32_t>(hypothesis.ids.size());
  if (tokens == 0) return;
  if (mapping_) {
    next_ = hypothesis;
    return;
  }
  if (!attention_ || tokens > room_) {
    frames_.wait();  // images may be made again
    const uint32_t room = translator_ ? 2 * static_cast<uint32_t>(source_ids_.size()) + kSpareTokens
                                      : options_.max_new_tokens;
    reserve(hypothesis, std::max(tokens, room));
  } else if (translator_) {
    Translation text;
    text.source_ids = source_ids_;
    text.ids = hypothesis.ids;
    attention_->restart(text);
  } else {
    Generation text;
    text.prompt_ids = source_ids_;
    text.ids = hypothesis.ids;
    attention_->restart(text);
  }
  computing_ = hypothesis;
  mapping_ = true;
  copied_ = false;
}

void Session::show(size_t step) {
  if (writing() || step >= steps_.size() || has_maps_of(step)) return;
  // The maps of the whole text have the rows of all its prefixes.
  const Hypothesis &best = steps_[step].front(), &last = steps_.back().front();
  const Hypothesis& wanted = begins_with(last.ids, best.ids) ? last : best;
  if (!mapping_ || wanted.ids != computing_.ids) map(wanted);
}

void Session::record(VkCommandBuffer commands, size_t slot, double budget_us) {
  if (mapping_ && !copied_) {
    slices_[slot] = {attention_.get(), attention_->record(commands, budget_us).number};
    if (!attention_->recorded()) return;
    for (const MapKind& kind : kinds_) maps_.record(commands, *attention_, kind);
    copied_ = true;
    mapped_ = computing_;
  } else if (writing()) {
    FrameTask* task = generation_task_.get();
    if (translation_task_) task = translation_task_.get();
    pace_us_ = std::min(pace_us_, budget_us);
    slices_[slot] = {task, task->record(commands, pace_us_).number};
  }
}

bool Session::has_maps_of(size_t step) const {
  return mapped_ && step < steps_.size() && begins_with(mapped_->ids, steps_[step].front().ids);
}

std::vector<std::string> Session::queries(AttentionKind kind, size_t step) const {
  if (kind == AttentionKind::kEncoder) return source_;
  std::vector<std::string> tokens = generator_ ? source_ : std::vector<std::string>();
  if (step >= steps_.size()) return tokens;
  // The tokens are those of the whole text that has maps: words of later steps are shown faintly.
  const Hypothesis& shown = has_maps_of(step) ? *mapped_ : steps_[step].front();
  tokens.insert(tokens.end(), shown.tokens.begin(), shown.tokens.end());
  return tokens;
}

std::vector<std::string> Session::keys(AttentionKind kind, size_t step) const {
  if (kind != AttentionKind::kDecoder) return source_;
  std::vector<std::string> keys = queries(kind, step);
  if (generator_ || keys.empty()) return keys;
  keys.pop_back();
  keys.insert(keys.begin(), translator_->start_token());
  return keys;
}

uint32_t Session::rows(AttentionKind kind, size_t step) const {
  const auto all = static_cast<uint32_t>(queries(kind, step).size());
  if (kind == AttentionKind::kEncoder) return all;
  // The rows of a language model's step are those of its token and all before it.
  const auto before = generator_ ? static_cast<uint32_t>(source_.size()) : 0;
  return std::min(all, before + static_cast<uint32_t>(step) + 1);
}

}  // namespace mulciber::viewer
