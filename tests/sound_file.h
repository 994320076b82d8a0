// Sound files that tests write.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace mulciber::tests {

/// A WAV file of 32-bit floats, (frames, channels) interleaved.
inline std::string wav_file(std::span<const float> samples, uint32_t rate, uint16_t channels = 1) {
  std::string file;
  const auto number = [&](auto value) {
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto bytes = static_cast<uint32_t>(samples.size() * sizeof(float));
  file += "RIFF";
  number(uint32_t{36} + bytes);
  file += "WAVEfmt ";
  number(uint32_t{16});
  number(uint16_t{3});  // IEEE float
  number(channels);
  number(rate);
  number(rate * channels * 4);
  number(static_cast<uint16_t>(channels * 4));
  number(uint16_t{32});
  file += "data";
  number(bytes);
  file.append(reinterpret_cast<const char*>(samples.data()), bytes);
  return file;
}

}  // namespace mulciber::tests
