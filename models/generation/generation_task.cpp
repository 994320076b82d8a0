// GenerationTask: a completion in slices.
#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include "models/adapters/adapters.h"
#include "models/core/frame_task.h"
#include "models/generation/completion.h"
#include "models/generation/completion_grammar.h"
#include "models/generation/generator_options.h"
#include "models/generation/sequence_task.h"
#include "models/generation/text_generator_impl.h"

namespace mulciber {

namespace {

/// A prompt's ids, and the embeddings among them.
struct EncodedPrompt {
  std::vector<uint32_t> ids;
  std::vector<PromptRows> embeddings;
  std::vector<int32_t> last;  // ids behind the last embeddings
};

}  // namespace

struct GenerationTask::Work {
  std::shared_ptr<TextGenerator::Impl> generator;
  GenerateOptions options;
  std::optional<Completion> completion;
  std::string piece;  // characters that became certain last
  std::vector<uint32_t> stops;
  std::optional<CompletionGrammar> grammar;
  bool cancelled = false;
  std::unique_ptr<SequenceTask> started;  // until the task has it
  SequenceTask* sequence = nullptr;
  std::optional<Generation> result;

  Work(std::shared_ptr<TextGenerator::Impl> owner, const std::vector<PromptPart>& prompt,
       const GenerateOptions& wanted, const GenerationOutputs& outputs);
  /// Throws ModelError where the prompt leaves no room in the context.
  static EncodedPrompt encode(const TextGenerator::Impl& impl,
                              const std::vector<PromptPart>& prompt, const GenerateOptions& wanted);
  bool look() {
    if (options.cancel && options.cancel->load()) cancelled = true;
    return !cancelled;
  }
  /// Appends a token to the completion. Returns whether the completion goes on.
  bool take(uint32_t id);
  /// Calls on_text with the piece.
  void show() const {
    if (options.on_text && !piece.empty()) options.on_text(piece);
  }
  /// Why the sequence ended.
  GenerateEnd end() const;
};

namespace {

RowRing row_ring(const ApplicationBuffer& to, uint32_t columns, const char* what) {
  if (to.buffer == VK_NULL_HANDLE) return {};
  RowRing ring;
  const uint64_t row_bytes = uint64_t{columns} * sizeof(float);
  ring.rows = static_cast<uint32_t>(std::min<uint64_t>(to.size / row_bytes, UINT32_MAX));
  ring.first.buffer = to.buffer;
  ring.first.offset = to.offset;
  ring.first.size = row_bytes;
  if (ring.rows == 0)
    throw SettingError(what,
                       fmt::format("take {} bytes, the buffer's range has {}", row_bytes, to.size),
                       "give room for a row at least");
  return ring;
}

}  // namespace

EncodedPrompt GenerationTask::Work::encode(const TextGenerator::Impl& impl,
                                           const std::vector<PromptPart>& prompt,
                                           const GenerateOptions& wanted) {
  impl.slots->require_free();
  EncodedPrompt encoded;
  if (!wanted.prompt_ids.empty()) {
    const auto is_text = [](const PromptPart& part) { return part.tokens == 0; };
    if (!std::ranges::all_of(prompt, is_text))
      throw SettingError("GenerateOptions::prompt_ids", "are given beside embeddings",
                         "leave one of them out");
    encoded.last = impl.given_prompt(wanted.prompt_ids, false);
    encoded.ids = wanted.prompt_ids;
    return encoded;
  }
  GenerateOptions options = wanted;
  const uint64_t row_bytes =
      impl.language->network().embedding.table.shape.columns() * sizeof(float);
  for (const PromptPart& part : prompt) {
    // Special tokens that stand before a text stand before embeddings too.
    if (part.tokens == 0 || options.add_special) {
      const std::vector<int32_t> ids = impl.tokens(part.tokens == 0 ? part.text : "", options);
      encoded.ids.insert(encoded.ids.end(), ids.begin(), ids.end());
      encoded.last.insert(encoded.last.end(), ids.begin(), ids.end());
    }
    options.add_special = false;
    if (part.tokens == 0) continue;
    const ApplicationBuffer& rows = part.embeddings;
    const uint64_t bytes = part.tokens * row_bytes;
    if (rows.buffer == VK_NULL_HANDLE || rows.size < bytes || !part.text.empty())
      throw SettingError("PromptPart::embeddings",
                         part.text.empty() ? fmt::format("of {} tokens take {} bytes, the buffer's "
                                                         "range has {}",
                                                         part.tokens, bytes, rows.size)
                                           : "stand in a part with a text",
                         "give a buffer and a size that suffices, and texts as parts of their own");
    PromptRows from = {static_cast<uint32_t>(encoded.ids.size()), part.tokens, {}};
    from.from.buffer = rows.buffer;
    from.from.offset = rows.offset;
    from.from.size = bytes;
    encoded.embeddings.push_back(from);
    const uint64_t total = encoded.ids.size() + uint64_t{part.tokens};
    if (total >= impl.context) impl.refuse_prompt(total);
    encoded.ids.resize(total, kNoTokenId);
    encoded.last.clear();
  }
  if (encoded.ids.empty()) throw ModelError("prompt", "has no tokens", "give some text");
  if (encoded.ids.size() >= impl.context) impl.refuse_prompt(encoded.ids.size());
  return encoded;
}

GenerationTask::Work::Work(std::shared_ptr<TextGenerator::Impl> owner,
                           const std::vector<PromptPart>& prompt, const GenerateOptions& wanted,
                           const GenerationOutputs& outputs)
    : generator(std::move(owner)), options(wanted) {
  TextGenerator::Impl& impl = *generator;
  if (!options.images.empty())
    throw SettingError("GenerateOptions::images", "are given to a task",
                       "generate() such texts whole");
  if (options.shift || options.attention)
    throw SettingError(options.shift ? "GenerateOptions::shift" : "GenerateOptions::attention",
                       "is asked for of a task", "generate() such texts whole");
  if (options.log_probabilities)
    throw SettingError("GenerateOptions::log_probabilities", "are asked for of a task",
                       "generate() such texts whole, or take GenerationOutputs::logits");
  if (impl.slots->shape().slots != 1)
    throw SettingError("sequences", "is more than 1", "run such batches whole");
  const EncodedPrompt encoded = encode(impl, prompt, options);
  completion.emplace(*impl.tokenizer, encoded.last, options.stop,
                     [this](std::string_view text) { piece += text; });
  completion->set_prompt(encoded.ids);
  const SequenceRequest asked = impl.request(options, encoded.last);
  if (!options.ignore_end) stops = impl.ends;
  if (asked.grammar) grammar = impl.completion_grammar(*asked.grammar, options.ignore_end);
  const DecoderNetwork& network = impl.language->network();
  const SequenceOutputs rings = {
      row_ring(outputs.logits, network.vocabulary, "GenerationOutputs::logits"),
      row_ring(outputs.states, static_cast<uint32_t>(network.embedding.table.shape.columns()),
               "GenerationOutputs::states")};
  SequenceTaskRequest request = {
      .prompt = encoded.ids,
      .embeddings = encoded.embeddings,
      .sampling = asked.sampling,
      .stream = asked.stream,
      .biases = asked.biases,
      .adapters = asked.adapters,
      .max_new_tokens = asked.max_new_tokens > 0 ? asked.max_new_tokens : impl.context,
      .stops = stops,
      .grammar = grammar ? &*grammar : nullptr,
      .on_prompt =
          [this](size_t done, size_t total) {
            look();
            if (options.on_prompt) options.on_prompt(done, total);
          },
      .on_token = [this](uint32_t id) { return look() && take(id) && look(); }};
  started = std::make_unique<SequenceTask>(impl.slots, std::move(request), rings);
  sequence = started.get();
}

bool GenerationTask::Work::take(uint32_t id) {
  piece.clear();
  const bool goes_on = completion->push(id, std::ranges::binary_search(stops, id));
  if (options.on_token) options.on_token({.id = id, .piece = piece, .likeliest = {}});
  show();
  return goes_on;
}

GenerateEnd GenerationTask::Work::end() const {
  const Generation& found = completion->so_far();
  const bool ended = !found.ids.empty() && std::ranges::binary_search(stops, found.ids.back());
  const bool limit = options.max_new_tokens > 0 && found.ids.size() >= options.max_new_tokens;
  if (ended || sequence->complete()) return GenerateEnd::kEndOfText;
  return limit ? GenerateEnd::kTokenLimit : GenerateEnd::kContextFull;
}

GenerationTask::GenerationTask(TextGenerator& generator, const std::string& prompt,
                               const GenerateOptions& options, const GenerationOutputs& outputs)
    : GenerationTask(generator, std::vector<PromptPart>{{.text = prompt, .embeddings = {}}},
                     options, outputs) {}

GenerationTask::GenerationTask(TextGenerator& generator, const std::vector<PromptPart>& prompt,
                               const GenerateOptions& options, const GenerationOutputs& outputs)
    : GenerationTask(std::make_unique<Work>(generator.impl_, prompt, options, outputs)) {}

GenerationTask::GenerationTask(std::unique_ptr<Work> work)
    : FrameTask([&work] {
        const auto& impl = *work->generator;
        // The slots read the model's weights, and go first.
        auto used =
            std::make_shared<std::pair<std::shared_ptr<Model>, std::shared_ptr<SequenceSlots>>>(
                impl.model, impl.slots);
        return std::make_unique<Impl>(impl.device, work->generator, std::move(work->started),
                                      std::move(used));
      }()),
      work_(std::move(work)) {}

GenerationTask::~GenerationTask() {
  // result() leaves in the cache what was computed, whether or not anybody asked for it.
  if (work_->result || !done()) return;
  // What the callback uses may be gone.
  work_->options.on_text = nullptr;
  try {
    result();
  } catch (const Error&) {
    // Nothing is left in the cache then.
  }
}

void GenerationTask::cancel() {
  FrameTask::cancel();
  work_->cancelled = true;
  work_->sequence->cancel();
}

size_t GenerationTask::tokens() const {
  return work_->result ? work_->result->ids.size() : work_->completion->so_far().ids.size();
}

std::string GenerationTask::token_text(uint32_t id) const {
  return mulciber::token_text(*work_->generator->tokenizer, static_cast<int32_t>(id));
}

Generation GenerationTask::so_far() const {
  return work_->result ? *work_->result : work_->completion->so_far();
}

Generation GenerationTask::result() {
  if (work_->result) return *work_->result;
  if (!done())
    throw SettingError("GenerationTask", "is not done", "ask for its result when done() says so");
  TextGenerator::Impl& impl = *work_->generator;
  const std::span<const uint32_t> held = impl.slots->tokens(0);
  impl.left.ids.assign(held.begin(), held.end());
  impl.left.identity.clear();
  impl.left.adapters = chosen_adapters(impl.language->network(), work_->options.adapters);
  work_->sequence->finish();
  work_->piece.clear();
  work_->result = work_->completion->finish(work_->end(), work_->cancelled);
  work_->show();
  return *work_->result;
}

}  // namespace mulciber
