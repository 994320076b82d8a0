// Sound files: WAV, FLAC, Ogg, MP3 and the other formats that libsndfile knows; then log-mel
// features.
#include <algorithm>
#include <span>

#include "audio/log_mel.h"
#include "audio/sound_file.h"
#include "tests/fuzz/fuzz.h"

using namespace mulciber;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::accepts([&] {
    const Sound sound = read_sound(std::as_bytes(std::span(bytes, size)), "sound", 16000,
                                   {.max_seconds = 60, .max_channels = 16});
    if (!(sound.missing_seconds >= 0)) std::abort();
    const std::vector<float>& samples = sound.samples;
    static const LogMel log_mel({.mels = 20});
    const size_t frames = std::min<size_t>(samples.size() / 160 + 2, 100);
    for (const float value : log_mel(samples, frames))
      if (!(value > -100 && value < 100)) std::abort();
  });
  return 0;
}
