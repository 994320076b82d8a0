// Sources that come and go between the steps of a search: each gives the results that it gives
// alone, bit for bit.
#include "models/translation/search_slots.h"

#include <algorithm>
#include <map>
#include <random>

#include "models/families/open_model.h"
#include "models/translation/encoder_decoder_architecture.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/small_marian.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Ids = std::vector<uint32_t>;
using Found = std::map<uint64_t, std::vector<Hypothesis>>;

namespace {

constexpr uint32_t kLongest = 24;  // tokens of a source

std::unique_ptr<EncoderDecoderModel> load_slots_model(const std::filesystem::path& folder) {
  const Checkpoint checkpoint(folder);
  return load_encoder_decoder(shared_device(), checkpoint, read_encoder_decoder_config(checkpoint),
                              {});
}

/// A source, and its own rules of the search.
struct Asked {
  Ids ids;
  GenerationSettings settings;
};

std::vector<Asked> drawn(size_t count, const GenerationSettings& settings, uint32_t vocabulary,
                         std::mt19937& random) {
  std::vector<Asked> all(count);
  for (Asked& asked : all) {
    asked.ids.resize(1 + random() % kLongest);
    for (uint32_t& id : asked.ids) id = 1 + random() % (vocabulary - 1);
    asked.ids.back() = 0;
    asked.settings = settings;
    asked.settings.max_new_tokens = settings.max_new_tokens - random() % 12;
    if (random() % 3 == 0) asked.settings.forced_bos = 1 + random() % (vocabulary - 1);
    if (random() % 3 == 0) asked.settings.min_length = random() % 6;
  }
  return all;
}

void take(SearchSlots& slots, Found& found) {
  for (SlotResult& result : slots.take()) {
    CHECK_FALSE(result.not_finite);
    CHECK(found.emplace(result.number, std::move(result.found)).second);
  }
}

Found found_alone(SearchSlots& slots, const std::vector<Asked>& all) {
  Found found;
  for (uint64_t i = 0; i < all.size(); ++i) {
    slots.begin(std::vector<SlotSource>{{i, all[i].ids, &all[i].settings}});
    slots.run(0, 1000);
    take(slots, found);
    CHECK(slots.searching() == 0);
  }
  return found;
}

/// Searches sources that arrive in another order at random times; some leave before they are done.
Found beside_others(SearchSlots& slots, const std::vector<Asked>& all, std::mt19937& random,
                    std::vector<bool>& left_early) {
  std::vector<uint64_t> order(all.size());
  for (uint64_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, random);
  Found found;
  uint32_t most = 0;
  for (size_t next = 0; next < order.size() || slots.searching() > 0;) {
    std::vector<SlotSource> sources;
    const uint32_t join = std::min<uint32_t>(random() % 4, slots.free());
    while (sources.size() < join && next < order.size()) {
      const Asked& asked = all[order[next]];
      sources.push_back({order[next++], asked.ids, &asked.settings});
    }
    slots.begin(sources);
    most = std::max(most, slots.searching());
    if (random() % 8 == 0) {
      const uint64_t number = order[random() % std::max<size_t>(next, 1)];
      if (next > 0 && !found.contains(number)) {
        slots.cancel(number);
        left_early[number] = true;
      }
    }
    slots.run(random() % 2 == 0 ? slots.searching() - std::min(slots.searching(), 1u) : 0,
              1 + random() % 5);
    take(slots, found);
  }
  CHECK(most > std::min(slots.count(), 8u) / 2);
  CHECK(slots.statistics().refills > 0);
  return found;
}

void check_slots_composition(EncoderDecoderModel& model, const GenerationSettings& settings,
                             uint32_t slot_count, size_t count, uint32_t vocabulary,
                             uint32_t seed) {
  std::mt19937 random(seed);
  const std::vector<Asked> all = drawn(count, settings, vocabulary, random);
  const auto slots = model.open_search(slot_count, kLongest, settings, {});
  const Found expected = found_alone(*slots, all);
  REQUIRE(expected.size() == count);
  std::vector<bool> left_early(count);
  const Found found = beside_others(*slots, all, random, left_early);
  CHECK(slots->statistics().needed_row_steps <= slots->statistics().row_steps);
  for (uint64_t i = 0; i < count; ++i) {
    INFO("source " << i << " of " << count << ", " << settings.beams << " beams");
    CHECK(found.contains(i) != left_early[i]);
    if (!found.contains(i)) continue;
    const std::vector<Hypothesis>&one = expected.at(i), &other = found.at(i);
    REQUIRE(one.size() == other.size());
    for (size_t n = 0; n < one.size(); ++n) {
      CHECK(one[n].ids == other[n].ids);
      CHECK(one[n].score == other[n].score);
    }
  }
}

}  // namespace

TEST_CASE(
    "What is found of a source does not depend on batch composition, slots and times of arrival") {
  const auto model = load_slots_model(small_marian());
  GenerationSettings settings = generation_settings(model->generation_config(), 64);
  settings.max_new_tokens = 30;
  struct Way {
    EarlyStopping early;
    uint32_t beams;
  };
  using enum EarlyStopping;
  const Way ways[] = {{kHeuristic, 1}, {kHeuristic, 4}, {kHeuristic, 5}, {kEarly, 4}, {kEarly, 5},
                      {kEarly, 1},     {kNever, 5},     {kNever, 1},     {kNever, 4}};
  for (const auto& [early, beams] : share_of(ways)) {
    settings.early_stopping = early;
    settings.beams = beams;
    settings.length_penalty = early == kNever ? 1.5f : 1;
    // Three slots with 4 beams have 12 rows, which every step covers.
    check_slots_composition(*model, settings, beams == 4 ? 3 : 8, 14, 200, beams);
  }
}

TEST_CASE("Rules on what is chosen are those of each source in any batch composition") {
  const auto model = load_slots_model(small_marian());
  GenerationSettings settings = generation_settings(model->generation_config(), 64);
  settings.max_new_tokens = 30;
  settings.beams = 4;
  settings.no_repeat_ngram = 2;
  settings.ends = {0, 7, 12, 40, 99, 150};
  settings.banned_words = {{5, 9}, {3, 3, 8}, {11, 2}};
  check_slots_composition(*model, settings, 8, 20, 200, 3);
  settings.beams = 1;
  settings.no_repeat_ngram = 1;
  check_slots_composition(*model, settings, 24, 40, 200, 4);
  settings.renormalize = true;
  settings.banned_words.clear();
  settings.banned = {1, 2, 3};
  check_slots_composition(*model, settings, 24, 40, 200, 5);
}

TEST_CASE("A trained model finds the same in any batch composition") {
  const Capabilities& device = shared_device().capabilities();
  if (device.max_storage_range < 16 << 20)
    MULCIBER_SKIP("the device binds less than 16 MiB at once");
  // Without subgroup arithmetic a step takes ten times as long.
  if (device.subgroup_size < 8 || !device.has(kSubgroupArithmetic))
    MULCIBER_SKIP("the device takes minutes for it");
  const auto model = load_slots_model(source_dir() / "assets/en-de");
  GenerationSettings settings = generation_settings(model->generation_config(), 128);
  settings.max_new_tokens = 40;
  for (const uint32_t beams : share_of({1u, 5u})) {
    settings.beams = beams;
    check_slots_composition(*model, settings, 6, 8, 3000, beams);
  }
}

TEST_CASE("More sources than slots find what they find in any order") {
  const auto model = load_slots_model(small_marian());
  GenerationSettings settings = generation_settings(model->generation_config(), 64);
  settings.beams = settings.n_best = 3;
  settings.max_new_tokens = 30;
  std::mt19937 random(9);
  std::vector<Ids> sources;
  for (const Asked& asked : drawn(30, settings, 200, random)) sources.push_back(asked.ids);
  sources.front().resize(kLongest, 5);
  size_t told = 0;
  GenerationRequest request = {.sources = sources, .settings = settings, .slots = 8};
  request.on_item = [&](size_t source, const std::vector<Hypothesis>& found) {
    ++told;
    CHECK(source < sources.size());
    CHECK_FALSE(found.empty());
  };
  const GenerationResult result = model->generate(request);
  CHECK(told == sources.size());
  CHECK(result.refills > 2);
  CHECK(result.needed_row_steps <= result.row_steps);
  std::vector<Ids> reversed(sources.rbegin(), sources.rend());
  request.sources = reversed;
  const GenerationResult other = model->generate(request);
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::vector<Hypothesis>&one = result.items[i],
          &same = other.items[sources.size() - 1 - i];
    REQUIRE(one.size() == same.size());
    for (size_t n = 0; n < one.size(); ++n) {
      CHECK(one[n].ids == same[n].ids);
      CHECK(one[n].score == same[n].score);
    }
  }
  CHECK(result.needed_row_steps == other.needed_row_steps);
}
