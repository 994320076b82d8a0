// Parts that a build may leave out: mulciber_supports() tells what calls of them do, and an error
// names the option. tests/install builds a library without them.
#include <array>
#include <span>
#include <string>

#include "audio/sound_file.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/sound_file.h"
#include "tests/support.h"

#include "mulciber/c/context.h"
#include "mulciber/image.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("A library tells which parts it was built with") {
  const std::array<float, 4> samples = {0, 0.5f, -0.5f, 0};
  const std::string sound = wav_file(samples, 16000);
  const auto no_sound =
      model_error([&] { read_sound(std::as_bytes(std::span(sound)), "tone", 16000); });
  CHECK((mulciber_supports("audio") != 0) == !no_sound.has_value());
  if (no_sound) CHECK_THAT(*no_sound, ContainsSubstring("no sound files: MULCIBER_AUDIO"));
  const std::string image = (source_dir() / "docs/images/viewer.png").string();
  const auto no_image = model_error([&] { read_image(image); });
  if (no_image)
    CHECK_THAT(*no_image, ContainsSubstring("reads none: MULCIBER_IMAGES"));
  else
    CHECK(mulciber_supports("images"));
  CHECK_FALSE(mulciber_supports("self-tests"));
  CHECK_FALSE(mulciber_supports("Audio"));
}
