// A character that speaks while the game goes on: each frame computes a part of its answer and
// draws the scene. Words come as they are chosen. The player interrupts one of the answers, which
// ends there, in the middle of a sentence, and the conversation continues from the words that were
// heard. A model with a chat template answers in turns; one without continues the words, a line for
// each turn.
//   dialogue MODEL "OPENING" ["REMARK"...] [--interrupt ANSWER] [--after PIECES] [--tokens N]
//            [--temperature T] [--budget US]
// Answers count from 1; --interrupt 0: none.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scene.h"

namespace {

struct Settings {
  std::vector<std::string> texts;  // the model, the opening, remarks
  uint32_t interrupt = 2, after = 3, tokens = 40;
  float temperature = 0.7f;
  double budget_us = 4000;
};

Settings read_arguments(int argc, char** argv) {
  Settings settings;
  bool wrong = false;
  for (int i = 1; i < argc && !wrong; ++i) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0) {
      settings.texts.push_back(name);
      continue;
    }
    const double value = ++i < argc ? std::strtod(argv[i], nullptr) : -1;
    if (name == "--interrupt") {
      settings.interrupt = static_cast<uint32_t>(value);
    } else if (name == "--after") {
      settings.after = static_cast<uint32_t>(value);
    } else if (name == "--tokens") {
      settings.tokens = static_cast<uint32_t>(value);
    } else if (name == "--temperature") {
      settings.temperature = static_cast<float>(value);
    } else if (name == "--budget") {
      settings.budget_us = value;
    } else {
      wrong = true;
    }
    wrong = wrong || value < 0;
  }
  if (wrong || settings.texts.size() < 2 || settings.tokens == 0) {
    std::fprintf(stderr,
                 "usage: dialogue MODEL \"OPENING\" [\"REMARK\"...] [--interrupt ANSWER] "
                 "[--after PIECES] [--tokens N] [--temperature T] [--budget US]\n");
    std::exit(2);
  }
  return settings;
}

/// Returns the prompt for the next line of the conversation, and sets the options that belong to
/// it.
std::string prompt_of(const mulciber::TextGenerator& character,
                      const std::vector<mulciber::ChatMessage>& heard,
                      mulciber::GenerateOptions& options) {
  if (const std::optional<std::string> prompt = character.chat_prompt(heard)) {
    options.add_special = false;  // the template has written them
    return *prompt;
  }
  options.stop = {"\n"};
  std::string lines;
  for (size_t i = 0; i < heard.size(); ++i) {
    if (i > 0 && heard[i].role == "user") lines += "\n";
    lines += heard[i].content;
  }
  return lines;
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings settings = read_arguments(argc, argv);
  const std::shared_ptr<const mulciber::OpenModel> model = mulciber::open_model(settings.texts[0]);
  graphics::Device application({.model = model.get()});
  const std::shared_ptr<mulciber::Device> device = mulciber::adopt_device(application.lent());
  mulciber::TextGenerator character(device, model);
  const Scene scene(application, {320, 180}, 6);

  // The words that both have spoken; the character knows no more than these. The cache keeps
  // earlier text, which is not computed again.
  std::vector<mulciber::ChatMessage> heard;
  float turn = 0;
  for (size_t answer = 1; answer < settings.texts.size(); ++answer) {
    heard.push_back({"user", settings.texts[answer]});
    std::printf("> %s\n", settings.texts[answer].c_str());
    uint32_t pieces = 0;
    std::string said;
    mulciber::GenerateOptions options;
    options.max_new_tokens = settings.tokens;
    options.sampling = mulciber::Sampling{.temperature = settings.temperature, .seed = answer};
    options.on_text = [&](std::string_view piece) {
      said += piece;
      ++pieces;
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    };
    const std::string prompt = prompt_of(character, heard, options);
    mulciber::GenerationTask task(character, prompt, options);
    int frames = 0, frames_after = 0;
    bool interrupted = false;
    for (; !task.done(); ++frames) {
      mulciber::FrameSlice slice;
      application.run([&](VkCommandBuffer commands) {
        slice = task.record(commands, settings.budget_us);
        scene.draw(commands, turn += 0.02f);
      });
      task.completed(slice.number);  // words come from here
      frames_after += interrupted;
      if (answer == settings.interrupt && pieces >= settings.after && !interrupted) {
        task.cancel();
        interrupted = true;
      }
    }
    const mulciber::Generation generation = task.result();
    std::printf("%s\n", interrupted ? " --" : "");
    std::fprintf(stderr, "answer %zu: %d frames, %d after the interruption, %s\n", answer, frames,
                 frames_after, mulciber::name_of(generation.end));
    if (generation.text != said) {
      std::fprintf(stderr, "the answer is not what was heard: %s\n", generation.text.c_str());
      return 1;
    }
    heard.push_back({"assistant", said});
  }
  return 0;
} catch (const mulciber::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
