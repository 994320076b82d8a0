#include "apps/viewer/options.h"

#include <array>
#include <filesystem>
#include <system_error>

#include <CLI/CLI.hpp>

namespace mulciber::viewer {

std::optional<Options> read_options(int argc, char** argv, int& code) {
  Options options;
  CLI::App app(
      "Attention in three dimensions while a network translates or writes: one Vulkan device and "
      "one queue draw and compute.",
      "mulciber-viewer");
  app.add_option("-m,--model", options.model,
                 "folder or GGUF file: a translation model or a language model")
      ->type_name("FILE|DIR");
  app.add_option("--text", options.text, "the first text");
  app.add_option("--kind", options.kind, "attention that is shown first")
      ->check(CLI::IsMember({"encoder", "decoder", "cross"}));
  app.add_option("--layer", options.layer, "layer that is shown first, from 0");
  app.add_option("--head", options.head, "head that is shown first, from 0");
  app.add_option("--step", options.step, "step that is shown, from 0, in place of the last");
  app.add_option("--threshold", options.threshold, "arcs of smaller weights are not drawn")
      ->capture_default_str();
  app.add_option("--beam", options.beams, "hypotheses of a translation")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "that a language model adds at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--budget", options.budget_ms,
                 "of the network in every frame, milliseconds: 4, with --headless 250")
      ->check(CLI::PositiveNumber);
  app.add_option("--device", options.device, "index or part of the name of a Vulkan device");
  app.add_option_function<std::string>(
         "--theme", [&](const std::string& name) { options.light = name == "light"; },
         "light or dark")
      ->check(CLI::IsMember({"light", "dark"}));
  app.add_option("--scale", options.scale, "2: everything twice as large; else the monitor's")
      ->check(CLI::Range(0.5, 4.0));
  app.add_option("--width", options.width, "of the window or image, pixels of scale 1")
      ->check(CLI::Range(320, 8192))
      ->capture_default_str();
  app.add_option("--height", options.height, "likewise")
      ->check(CLI::Range(240, 8192))
      ->capture_default_str();
  app.add_option("--font", options.font, "TrueType file for all text");
  app.add_flag("--headless", options.headless, "draw without a window");
  app.add_option("--frames", options.frames,
                 "end after so many frames in which nothing was left to compute");
  app.add_option("--screenshot", options.screenshot, "write the last frame, a PNG file")
      ->type_name("FILE");
  app.add_option("--report", options.report,
                 "write what the last frame shows, and where in it, a JSON file")
      ->type_name("FILE");
  app.add_option("--drop", options.drop)->group("");
  app.add_option("--resized-width", options.resized_width)->group("");
  app.add_option("--resized-height", options.resized_height)->group("");
  app.footer(
      "Example: mulciber-viewer --text \"The old house stands near the river.\"\n"
      "A file or folder that is dragged onto the window is loaded. docs/guide/viewer.md has the "
      "keys.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    code = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  if (options.headless && options.frames == 0) options.frames = 1;
  if (options.budget_ms == 0) options.budget_ms = options.headless ? 250 : 4;
  if (options.model.empty()) options.model = bundled_model();
  return options;
}

std::string bundled_model() {
  std::error_code none;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none);
  const std::filesystem::path folder = program.parent_path();
  for (const char* place : {"../assets/en-de", "../share/mulciber/en-de", "assets/en-de"}) {
    const std::filesystem::path model = folder / place;
    if (std::filesystem::exists(model / "config.json", none)) return model.lexically_normal();
  }
  return {};
}

}  // namespace mulciber::viewer
