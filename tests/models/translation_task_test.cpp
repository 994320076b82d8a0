// The intermediate results of a translation under way.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tests/catch.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

const std::string kSentence = "The old house stands near the river, and nobody lives there.";

bool begins_with(const std::vector<uint32_t>& ids, const std::vector<uint32_t>& first) {
  return ids.size() >= first.size() && std::equal(first.begin(), first.end(), ids.begin());
}

/// Runs a task to its end, and calls `look` after each step of decoding.
template <typename Look>
void follow(TranslationTask& task, const Look& look) {
  for (uint32_t seen = 0; !task.done();) {
    task.step(300);
    task.wait();
    if (task.steps() == seen) continue;
    seen = task.steps();
    look();
  }
}

}  // namespace

TEST_CASE("A translation under way tells its best hypothesis and its beams step by step") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, (source_dir() / "assets/en-de").string());
  const TranslateOptions options = {.beams = 4, .n_best = 4};
  const Translation whole = translator.translate(kSentence, options);
  TranslationTask task(translator, kSentence, options);
  CHECK(task.so_far().ids.empty());
  CHECK(task.so_far().source_ids == whole.source_ids);
  CHECK(task.beams().empty());
  std::vector<std::vector<uint32_t>> before = {{}};  // beams that ran on after the last step
  size_t branched = 0;
  follow(task, [&] {
    const std::vector<Beam> beams = task.beams();
    const Translation best = task.so_far();
    CHECK_FALSE(best.complete);
    CHECK(best.text == task.text());
    const auto first_running = std::ranges::find(beams, false, &Beam::finished);
    CHECK(std::all_of(first_running, beams.end(), [](const Beam& beam) { return !beam.finished; }));
    CHECK(std::is_sorted(beams.begin(), first_running,
                         [](const Beam& a, const Beam& b) { return a.score > b.score; }));
    CHECK(std::is_sorted(first_running, beams.end(),
                         [](const Beam& a, const Beam& b) { return a.score > b.score; }));
    if (first_running == beams.end()) return;
    CHECK(beams.end() - first_running == 4);
    CHECK(best.ids == first_running->ids);
    CHECK(best.score == first_running->score);
    std::set<std::vector<uint32_t>> different;
    std::vector<std::vector<uint32_t>> now;
    for (auto beam = first_running; beam != beams.end(); ++beam) {
      CHECK(beam->ids.size() == task.steps());
      CHECK(beam->tokens.size() == beam->ids.size());
      CHECK(std::ranges::any_of(before, [&](const auto& ids) {
        return begins_with(beam->ids, ids) && beam->ids.size() == ids.size() + 1;
      }));
      different.insert(beam->ids);
      now.push_back(beam->ids);
    }
    CHECK(different.size() == 4);
    branched += !begins_with(now.front(), before.front());
    before = std::move(now);
  });
  CHECK(branched > 0);  // the sentence's best beginning changes
  CHECK(task.steps() >= whole.ids.size());
  const Translation last = task.so_far();
  CHECK(last.ids == whole.ids);
  CHECK(last.text == whole.text);
  CHECK(last.tokens == whole.tokens);
  CHECK(last.score == whole.score);
  const std::vector<Beam> finished = task.beams();
  REQUIRE(finished.size() == whole.alternatives.size());
  for (size_t i = 0; i < finished.size(); ++i) {
    CHECK(finished[i].finished);
    CHECK(finished[i].ids == whole.alternatives[i].ids);
    CHECK(finished[i].score == whole.alternatives[i].score);
  }
}

TEST_CASE("Scores of hypotheses that go on are those of their beginnings") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, (source_dir() / "assets/en-de").string());
  // With one beam, the score is the sum over the first ids divided by their number.
  TranslationTask task(translator, kSentence, {.beams = 1, .length_penalty = 1});
  double sum = 0;
  follow(task, [&] {
    const Translation best = task.so_far();
    const double now = best.score * static_cast<double>(best.ids.size());
    CHECK(now <= sum);  // probabilities are at most 1
    CHECK(best.score > -5);
    sum = now;
  });
  CHECK(std::abs(sum - task.result().score * static_cast<double>(task.result().ids.size())) < 1e-4);
  TranslationTask cancelled(translator, kSentence);
  cancelled.step(1);
  cancelled.cancel();
  cancelled.wait();
  CHECK(cancelled.so_far().text.empty());
  TranslationTask nothing(translator, " ");
  CHECK(nothing.beams().empty());
  CHECK_FALSE(nothing.so_far().complete);
}
