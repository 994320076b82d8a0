#include "mulciber/batch_translator.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <list>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "models/translation/translator_impl.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Most searches under way at once: each has memory of its own.
constexpr size_t kMostSearches = 3;
// Sources of up to so many tokens, and up to twice, four times ... as many, search apart: a search
// has memory for its longest source in each of its slots.
constexpr uint32_t kShortSource = 64;

}  // namespace

struct BatchTranslator::Impl {
  /// The properties that texts of one search share.
  struct SearchKey {
    uint32_t source_length = 0;
    // max_new_tokens bounds all texts; n_best is 1 and forced_bos is unset, because each text has
    // its own.
    GenerationSettings settings;
    HeadMasks head_masks;
    bool operator==(const SearchKey&) const = default;
  };

  struct Text {
    uint64_t number = 0;
    TranslationRequest request;
    GenerationSettings settings;
    SearchKey key;
    Translation translation;  // what is known before the search
    bool cancelled = false;
  };
  using TextPointer = std::unique_ptr<Text>;

  struct Search {
    SearchKey key;
    std::unique_ptr<SearchSlots> slots;
    std::list<TextPointer> texts;  // under way
    SlotStatistics told;           // what `statistics` has of it
  };

  std::shared_ptr<Translator::Impl> translator;
  BatchTranslatorOptions options;
  std::deque<TextPointer> waiting;
  std::list<Search> searches;
  /// Texts that have ended, with an error or without. Callbacks follow once the state is complete.
  std::vector<std::pair<TextPointer, std::exception_ptr>> ended;
  BatchTranslatorStatistics statistics;
  uint64_t next_number = 1;

  TranslationModel& model() { return *translator->translation; }
  SearchKey key_of(const Text& text);
  bool end_cancelled();
  Search* search_of(Text& text);
  bool admit();
  bool advance(Search& search);
  void count(Search& search);
  bool tell();
};

BatchTranslator::Impl::SearchKey BatchTranslator::Impl::key_of(const Text& text) {
  const auto tokens = static_cast<uint32_t>(text.translation.source_ids.size());
  SearchKey key = {.source_length = std::min(std::max(std::bit_ceil(tokens), kShortSource),
                                             model().max_source_tokens()),
                   .settings = text.settings,
                   .head_masks = text.request.options.head_masks};
  GenerationSettings& shared = key.settings;
  // Texts that ask for less than the model writes by default search beside the others.
  const uint32_t usual =
      generation_settings(model().generation_config(), model().max_target_tokens()).max_new_tokens;
  if (shared.max_new_tokens > usual)
    shared.max_new_tokens =
        std::min(std::bit_ceil(shared.max_new_tokens), model().max_target_tokens());
  else
    shared.max_new_tokens = usual;
  shared.n_best = 1;
  shared.forced_bos.reset();
  return key;
}

bool BatchTranslator::Impl::end_cancelled() {
  const size_t before = ended.size();
  const auto end = [&](TextPointer text) {
    ++statistics.cancelled;
    text->translation.complete = false;
    ended.emplace_back(std::move(text), nullptr);
  };
  for (auto text = waiting.begin(); text != waiting.end();) {
    if ((*text)->cancelled) {
      end(std::move(*text));
      text = waiting.erase(text);
    } else {
      ++text;
    }
  }
  for (Search& search : searches) {
    for (auto text = search.texts.begin(); text != search.texts.end();) {
      if ((*text)->cancelled) {
        search.slots->cancel((*text)->number);
        end(std::move(*text));
        text = search.texts.erase(text);
      } else {
        ++text;
      }
    }
  }
  return ended.size() > before;
}

/// The search that a text may join, opened if need be; null where it must wait for others to end.
BatchTranslator::Impl::Search* BatchTranslator::Impl::search_of(Text& text) {
  for (Search& search : searches)
    if (search.key == text.key) return &search;
  if (searches.size() >= kMostSearches) return nullptr;
  const SearchKey& key = text.key;
  const uint32_t slots =
      std::min(options.slots, model().batch_limit(key.source_length, key.settings));
  try {
    searches.push_back(
        {key, model().open_search(slots, key.source_length, key.settings, key.head_masks), {}, {}});
  } catch (const DeviceError& error) {
    if (error.kind() == DeviceError::Kind::kOutOfMemory && !searches.empty()) return nullptr;
    throw;
  }
  return &searches.back();
}

bool BatchTranslator::Impl::admit() {
  std::vector<std::pair<Search*, std::vector<SlotSource>>> joining;
  for (auto next = waiting.begin(); next != waiting.end();) {
    Text& text = **next;
    Search* search = nullptr;
    try {
      search = search_of(text);
    } catch (const DeviceError& error) {
      if (error.kind() == DeviceError::Kind::kLost) throw;
      ended.emplace_back(std::move(*next), std::current_exception());
      next = waiting.erase(next);
      continue;
    }
    // Later texts must not keep the others from ending.
    if (!search) break;
    auto found = std::ranges::find(joining, search, [](const auto& entry) { return entry.first; });
    if (found == joining.end()) found = joining.insert(found, {search, {}});
    if (found->second.size() >= search->slots->free()) {
      ++next;
      continue;
    }
    found->second.push_back({text.number, text.translation.source_ids, &text.settings});
    search->texts.push_back(std::move(*next));
    next = waiting.erase(next);
  }
  bool joined = false;
  for (const auto& [search, sources] : joining) {
    search->slots->begin(sources);
    joined = joined || !sources.empty();
  }
  return joined;
}

void BatchTranslator::Impl::count(Search& search) {
  const SlotStatistics& now = search.slots->statistics();
  statistics.steps += now.steps - search.told.steps;
  statistics.row_steps += now.row_steps - search.told.row_steps;
  statistics.needed_row_steps += now.needed_row_steps - search.told.needed_row_steps;
  statistics.refills += now.refills - search.told.refills;
  statistics.encode_seconds += now.encode_seconds - search.told.encode_seconds;
  search.told = now;
}

bool BatchTranslator::Impl::advance(Search& search) {
  const uint32_t searching = search.slots->searching();
  if (searching == 0) return false;
  statistics.sequence_steps += searching;
  const auto start = Clock::now();
  search.slots->run(searching - 1, 1);
  statistics.decode_seconds += seconds_since(start);
  for (SlotResult& result : search.slots->take()) {
    const auto found = std::ranges::find(search.texts, result.number, &Text::number);
    TextPointer text = std::move(*found);
    search.texts.erase(found);
    std::exception_ptr error;
    ++statistics.ended;
    if (result.not_finite) {
      try {
        model().refuse(text->translation.source_ids, text->settings.start, search.key.head_masks);
      } catch (const Error&) {
        error = std::current_exception();
      }
    } else {
      if (result.found.size() > text->settings.n_best) result.found.resize(text->settings.n_best);
      translator->finish(text->translation, result.found);
      statistics.target_tokens += text->translation.ids.size();
    }
    ended.emplace_back(std::move(text), error);
  }
  return true;
}

/// Makes the callbacks, which may submit and cancel texts.
bool BatchTranslator::Impl::tell() {
  const auto told = std::exchange(ended, {});
  for (const auto& [text, error] : told) {
    if (!error) {
      if (text->request.on_end) text->request.on_end(text->translation);
      continue;
    }
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& problem) {
      if (text->request.on_error) text->request.on_error(problem);
    }
  }
  return !told.empty();
}

BatchTranslator::BatchTranslator(Translator& translator, const BatchTranslatorOptions& options)
    : impl_(std::make_unique<Impl>()) {
  if (options.slots == 0)
    throw SettingError("BatchTranslatorOptions::slots", "is 0", "give one slot or more");
  impl_->translator = translator.impl_;
  impl_->options = options;
}

BatchTranslator::~BatchTranslator() = default;
BatchTranslator::BatchTranslator(BatchTranslator&&) noexcept = default;
BatchTranslator& BatchTranslator::operator=(BatchTranslator&&) noexcept = default;

uint64_t BatchTranslator::submit(TranslationRequest request) {
  auto text = std::make_unique<Impl::Text>();
  text->request = std::move(request);
  const TranslateOptions& options = text->request.options;
  text->settings = impl_->translator->settings(options);
  impl_->translator->check_head_masks(options.head_masks);
  std::vector<Translation> results(1);
  const std::vector<uint32_t>& ids = text->request.source_ids;
  const std::vector<std::vector<uint32_t>> sources =
      ids.empty() ? impl_->translator->tokenize({&text->request.text, 1}, results, options)
                  : impl_->translator->take_ids({&ids, 1}, results, options);
  text->translation = std::move(results.front());
  if (!sources.front().empty()) impl_->model().check_request(sources.front(), text->settings);
  text->number = impl_->next_number++;
  ++impl_->statistics.requests;
  const uint64_t number = text->number;
  if (sources.front().empty()) {
    ++impl_->statistics.ended;
    impl_->ended.emplace_back(std::move(text), nullptr);
    return number;
  }
  impl_->statistics.source_tokens += sources.front().size();
  text->key = impl_->key_of(*text);
  impl_->waiting.push_back(std::move(text));
  return number;
}

void BatchTranslator::cancel(uint64_t request) {
  const auto mark = [&](const auto& texts) {
    for (const auto& text : texts)
      if (text->number == request) text->cancelled = true;
  };
  mark(impl_->waiting);
  for (const Impl::Search& search : impl_->searches) mark(search.texts);
}

bool BatchTranslator::step() {
  bool worked = impl_->end_cancelled();
  worked |= impl_->admit();
  for (Impl::Search& search : impl_->searches) worked |= impl_->advance(search);
  for (Impl::Search& search : impl_->searches) impl_->count(search);
  std::erase_if(impl_->searches, [](const Impl::Search& search) { return search.texts.empty(); });
  worked |= impl_->tell();
  return worked;
}

size_t BatchTranslator::running() const {
  size_t count = 0;
  for (const Impl::Search& search : impl_->searches) count += search.texts.size();
  return count;
}
size_t BatchTranslator::waiting() const { return impl_->waiting.size(); }
const BatchTranslatorStatistics& BatchTranslator::statistics() const { return impl_->statistics; }

}  // namespace mulciber
