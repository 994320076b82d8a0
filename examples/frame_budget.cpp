// The time that a network costs the frames of an application: a scene is drawn alone, and with a
// translation that runs in slices, submitted by themselves (step) or recorded into the frame's own
// command buffer (record). Blocks of frames are interleaved, so that other work of the machine
// slows all kinds alike. A frame lasts from its first call until the device has ended it.
//   frame_budget MODEL_FOLDER [--frames N] [--budget US] [--at-most MS]
//                [--percentile P] [--image FILE.ppm]
// --frames: of each kind. --at-most: fails where a percentile (99 by default) with a network
// exceeds the one without by more.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "ppm.h"
#include "scene.h"

namespace {

constexpr VkExtent2D kExtent = {640, 360};
constexpr uint32_t kSide = 12;
constexpr size_t kBlock = 20;  // frames of one kind in a row
const std::string kText =
    "The old house stands near the river, and nobody has lived there for years.";

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Settings {
  std::string model;
  size_t frames = 600;
  double budget_us = 4000;
  double at_most_ms = 0;  // 0: any difference passes
  double percentile = 99;
  std::string image;
};

Settings read_arguments(int argc, char** argv) {
  Settings settings;
  bool wrong = argc < 2 || argc % 2 != 0;
  if (!wrong) settings.model = argv[1];
  for (int i = 2; !wrong && i < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--frames") {
      settings.frames = std::strtoul(argv[i + 1], nullptr, 10);
    } else if (name == "--budget") {
      settings.budget_us = std::strtod(argv[i + 1], nullptr);
    } else if (name == "--at-most") {
      settings.at_most_ms = std::strtod(argv[i + 1], nullptr);
    } else if (name == "--percentile") {
      settings.percentile = std::strtod(argv[i + 1], nullptr);
    } else if (name == "--image") {
      settings.image = value;
    } else {
      wrong = true;
    }
  }
  if (wrong || settings.frames == 0 || settings.budget_us <= 0 || settings.percentile <= 0 ||
      settings.percentile > 100) {
    std::fprintf(stderr,
                 "usage: frame_budget MODEL_FOLDER [--frames N] [--budget US] [--at-most MS] "
                 "[--percentile P] [--image FILE.ppm]\n");
    std::exit(2);
  }
  return settings;
}

enum class Kind { kAlone, kStep, kRecord };

/// Frames of one kind.
struct Frames {
  Kind kind;
  const char* name;
  std::vector<double> ms = {};
  uint64_t slices = 0, dispatches = 0;
  double estimated_us = 0;
  std::unique_ptr<mulciber::TranslationTask> task = {};
  std::string text = {};
  int translations = 0;

  void note(const mulciber::FrameSlice& slice) {
    slices += slice.number > 0;
    dispatches += slice.dispatches;
    estimated_us += slice.estimated_us;
  }
  /// The percentile by nearest rank.
  double percentile(double percent) const {
    std::vector<double> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    const auto rank =
        static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(ms.size())));
    return sorted[std::max<size_t>(rank, 1) - 1];
  }
  void print() const {
    std::printf("%-9s %7zu  %7.2f  %7.2f  %7.2f  %7.2f  %6llu  %8.1f  %9.0f  %4d\n", name,
                ms.size(), percentile(50), percentile(90), percentile(99), percentile(100),
                static_cast<unsigned long long>(slices),
                slices ? static_cast<double>(dispatches) / static_cast<double>(slices) : 0,
                slices ? estimated_us / static_cast<double>(slices) : 0, translations);
  }
};

}  // namespace

int main(int argc, char** argv) try {
  const Settings settings = read_arguments(argc, argv);
  const std::shared_ptr<const mulciber::OpenModel> model = mulciber::open_model(settings.model);
  graphics::Device application({.model = model.get()});
  const std::shared_ptr<mulciber::Device> device = mulciber::adopt_device(application.lent());
  mulciber::Translator translator(device, model);
  const Scene scene(application, kExtent, kSide);

  Frames alone = {Kind::kAlone, "alone"}, stepped = {Kind::kStep, "step()"},
         recorded = {Kind::kRecord, "record()"};
  float turn = 0;
  const auto draw_frame = [&](Frames& frames) {
    // A game would do this while it loads: a task builds its programs when it is made.
    if (frames.kind != Kind::kAlone && !frames.task)
      frames.task = std::make_unique<mulciber::TranslationTask>(translator, kText);
    const Clock::time_point start = Clock::now();
    if (frames.kind == Kind::kStep) frames.note(frames.task->step(settings.budget_us).slice);
    mulciber::FrameSlice slice;
    application.run([&](VkCommandBuffer commands) {
      if (frames.kind == Kind::kRecord) slice = frames.task->record(commands, settings.budget_us);
      scene.draw(commands, turn += 0.02f);
    });
    if (slice.number > 0) frames.task->completed(slice.number);
    frames.ms.push_back(ms_since(start));
    if (frames.kind == Kind::kRecord) frames.note(slice);
    if (frames.task && frames.task->done()) {
      frames.text = frames.task->result().text;
      frames.task.reset();
      ++frames.translations;
    }
  };
  for (size_t i = 0; i < kBlock; ++i) draw_frame(alone);  // the driver compiles the scene's shaders
  alone.ms.clear();
  while (recorded.ms.size() < settings.frames) {
    for (Frames* frames : {&alone, &stepped, &recorded}) {
      for (size_t i = 0; i < kBlock; ++i) draw_frame(*frames);
    }
  }
  // On slow devices the translation has not ended yet.
  for (Frames* frames : {&stepped, &recorded}) {
    while (frames->text.empty()) draw_frame(*frames);
    frames->ms.resize(alone.ms.size());
  }

  std::printf("frames of %u x %u, %.0f us for a translation in each\n", kExtent.width,
              kExtent.height, settings.budget_us);
  std::printf(
      "           frames  50 %% ms     90 %%     99 %%  longest  slices  dispatch  expected us "
      " texts\n");
  for (const Frames* frames : {&alone, &stepped, &recorded}) frames->print();
  if (!settings.image.empty()) write_ppm(settings.image, kExtent, scene.target().read());
  std::printf("%s\n", recorded.text.c_str());
  if (stepped.text != recorded.text) {
    std::fprintf(stderr, "step() says: %s\n", stepped.text.c_str());
    return 1;
  }
  if (settings.at_most_ms <= 0) return 0;
  for (const Frames* frames : {&stepped, &recorded}) {
    const double more =
        frames->percentile(settings.percentile) - alone.percentile(settings.percentile);
    if (more <= settings.at_most_ms) continue;
    std::fprintf(stderr, "%s: percentile %.0f is %.2f ms above that of frames alone\n",
                 frames->name, settings.percentile, more);
    return 1;
  }
  return 0;
} catch (const mulciber::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
