// Items of a batch that are done leave it: the others' results stay the same, bit for bit.
#include "models/translation/batch_search.h"

#include <random>

#include "models/families/open_model.h"
#include "models/translation/encoder_decoder_architecture.h"
#include "mulciber/open_model.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/small_marian.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Ids = std::vector<uint32_t>;

namespace {

std::unique_ptr<EncoderDecoderModel> load_search_model(const std::filesystem::path& folder) {
  const Checkpoint checkpoint(folder);
  return load_encoder_decoder(shared_device(), checkpoint, read_encoder_decoder_config(checkpoint),
                              {});
}

std::vector<Ids> drawn_sources(size_t count, uint32_t shortest, uint32_t longest,
                               uint32_t vocabulary, uint32_t end) {
  std::mt19937 random(11);
  std::vector<Ids> sources(count);
  for (Ids& source : sources) {
    source.resize(shortest + random() % (longest - shortest + 1));
    for (uint32_t& id : source) id = random() % vocabulary;
    source.back() = end;
  }
  return sources;
}

/// Compares the search of a batch that stays whole with that of one that its items leave.
void check_same_search(EncoderDecoderModel& model, const std::vector<Ids>& sources,
                       const GenerationSettings& settings, double most_row_steps) {
  GenerationRequest request = {.sources = sources, .settings = settings};
  request.stays_whole = true;
  const GenerationResult whole = model.generate(request);
  request.stays_whole = false;
  const GenerationResult found = model.generate(request);
  REQUIRE(whole.row_steps > 0);
  const double part = static_cast<double>(found.row_steps) / static_cast<double>(whole.row_steps);
  INFO(found.row_steps << " row steps of " << whole.row_steps);
  CHECK(part <= most_row_steps);
  REQUIRE(found.items.size() == sources.size());
  for (size_t item = 0; item < sources.size(); ++item) {
    INFO("source " << item);
    REQUIRE(found.items[item].size() == whole.items[item].size());
    for (size_t i = 0; i < found.items[item].size(); ++i) {
      CHECK(found.items[item][i].ids == whole.items[item][i].ids);
      CHECK(found.items[item][i].score == whole.items[item][i].score);
    }
  }
}

/// Batches of this size bind up to 12 MB; a Translator takes smaller ones where that is too much.
bool fits() { return shared_device().capabilities().max_storage_range >= 16 << 20; }

}  // namespace

TEST_CASE("A batch that its items leave finds what the whole batch finds") {
  if (!fits()) MULCIBER_SKIP("the device binds less than 16 MiB at once");
  const auto model = load_search_model(source_dir() / "assets/en-de");
  // The sources are random ids, so that the lengths of the results differ much.
  const std::vector<Ids> sources = drawn_sources(23, 1, 30, 3000, 0);
  // Without subgroup arithmetic a step takes ten times as long.
  const bool quick = shared_device().capabilities().has(kSubgroupArithmetic);
  for (const uint32_t beams :
       share_of(quick ? std::vector<uint32_t>{1, 2, 5} : std::vector<uint32_t>{1})) {
    DYNAMIC_SECTION(beams << " beams") {
      GenerationSettings settings = generation_settings(model->generation_config(), 128);
      settings.beams = settings.n_best = beams;
      settings.max_new_tokens = 60;
      check_same_search(*model, sources, settings, 0.85);
    }
  }
  SECTION("all end at the limit") {
    GenerationSettings settings = generation_settings(model->generation_config(), 128);
    settings.beams = 3;
    settings.max_new_tokens = 4;
    check_same_search(*model, sources, settings, 1);
  }
}

TEST_CASE("Rules on what is chosen go with the items") {
  if (!fits()) MULCIBER_SKIP("the device binds less than 16 MiB at once");
  const auto model = load_search_model(small_marian());
  const std::vector<Ids> sources = drawn_sources(33, 1, 20, 200, 0);
  GenerationSettings settings = generation_settings(model->generation_config(), 64);
  settings.beams = settings.n_best = 3;
  settings.max_new_tokens = 40;
  settings.no_repeat_ngram = 2;
  settings.ends = {0, 7, 12, 40, 99, 150};
  settings.banned_words = {{5, 9}, {3, 3, 8}, {11, 2}};
  settings.min_length = 3;
  check_same_search(*model, sources, settings, 0.9);
  settings.renormalize = true;
  settings.banned_words.clear();
  settings.banned = {1, 2, 3};
  check_same_search(*model, sources, settings, 0.9);
}

TEST_CASE("Rows of the state that is kept name their new slots") {
  ControlLayout before, after;
  const BeamRoom room = {.banned = 2, .ends = 1, .ngrams = true};
  const BeamStateLayout from = plan_beam_state(before, 4, 2, 6, room),
                        to = plan_beam_state(after, 2, 2, 6, room);
  ControlWords control(before.words()), kept(after.words());
  initialize_beam_state(control, from, {.start = 9, .ends = {0}, .max_length = 6, .banned = {4}});
  // Item 3 is in rows 6 and 7, and the histories of its beams cross. The other items have not
  // begun.
  control.fill(from.positions.part(6, 2), 2);
  shader::BeamItem item = control.get(from.items, 3);
  item.count = 1;
  item.worst = -2;
  control.set(from.items, 3, item);
  control.set(from.finished, 6, {.score = -2, .length = 2, .row = 7, .step = 1, .end = 0});
  for (const uint32_t t : {1u, 2u}) {
    for (uint32_t row = 0; row < 8; ++row) {
      control.set(from.history_tokens, t * 8 + row, 10 * t + row);
      control.set(from.history_parents, t * 8 + row, row < 6 ? row : 13 - row);
    }
  }
  control.set(from.ancestry, 6 * 6 + 1, 7);
  control.set(from.forbidden, 7 * 6 + 2, 77);
  const std::vector<Hypothesis> finished = finished_hypotheses(from, control, 3),
                                running = running_hypotheses(from, control, 3);
  REQUIRE(finished.size() == 1);
  REQUIRE(running.size() == 1);  // the other beam is a copy of the start
  keep_items(from, control, std::vector<uint32_t>{3, 1}, to, kept);
  const std::vector<Hypothesis> moved = finished_hypotheses(to, kept, 0);
  REQUIRE(moved.size() == 1);
  CHECK(moved[0].ids == finished[0].ids);
  CHECK(moved[0].score == finished[0].score);
  CHECK(running_hypotheses(to, kept, 0).at(0).ids == running[0].ids);
  CHECK(kept.get(to.ancestry, 0 * 6 + 1) == 1);
  CHECK(kept.get(to.ancestry, 1 * 6 + 1) == 1);
  CHECK(kept.get(to.forbidden, 1 * 6 + 2) == 77);
  CHECK(kept.get(to.banned, 1) == 4);
  CHECK(kept.get(to.items, 1).status == BEAM_SEARCHES);
  CHECK(kept.get(to.positions, 0) == 2);
  CHECK(kept.get(to.positions, 2) == 0);
  CHECK(kept.get(to.items, 0).last_position == 5);
  CHECK(kept.get(to.search).unfinished == 2);

  keep_items(from, control, std::vector<uint32_t>{3}, to, kept);
  CHECK(kept.get(to.items, 1).status == BEAM_DONE);
  CHECK(kept.get(to.search).unfinished == 1);
  CHECK_THROWS(keep_items(from, control, std::vector<uint32_t>{1, 2, 3}, to, kept));
  CHECK_THROWS(keep_items(from, control, std::vector<uint32_t>{4}, to, kept));
  control.set(from.history_parents, 1 * 8 + 6, 3);  // another item's row
  CHECK_THROWS(keep_items(from, control, std::vector<uint32_t>{3}, to, kept));
}
