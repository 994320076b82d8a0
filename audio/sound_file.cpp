#include "audio/sound_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>

#include "checkpoints/mapped_file.h"
#include "mulciber/error.h"

#ifdef MULCIBER_SOUND_FILES
#include <samplerate.h>
#include <sndfile.h>
#endif

namespace mulciber {

// Full scale is 1. Files of 32-bit integers stored as floats still pass, and sums of samples within
// this bound are finite.
constexpr float kLoudest = 4e9f;

void check_samples(std::span<const float> samples, const std::string& name, uint64_t first) {
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!(std::abs(samples[i]) <= kLoudest))
      throw ModelError(name, fmt::format("sample {} is {}", first + i, samples[i]),
                       "samples are numbers of -1 to 1 at full scale");
  }
}

#ifdef MULCIBER_SOUND_FILES
namespace {

constexpr uint32_t kLowestRate = 1000, kHighestRate = 384'000;  // Hz
constexpr size_t kBlockFrames = 8192;

/// Whether the bytes begin like one of the formats above. libsndfile would also try formats that
/// are no longer in use.
bool begins_as_sound(std::span<const std::byte> bytes) {
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()),
                               std::min<size_t>(bytes.size(), 4));
  static constexpr std::array<std::string_view, 8> kMagic = {"RIFF", "RIFX", "RF64", "fLaC",
                                                             "OggS", "FORM", ".snd", "ID3"};
  for (std::string_view magic : kMagic)
    if (begin.starts_with(magic)) return true;
  // The header of an MPEG frame begins with eleven ones.
  return begin.size() == 4 && static_cast<unsigned char>(begin[0]) == 0xff &&
         (static_cast<unsigned char>(begin[1]) & 0xe0) == 0xe0;
}

/// A file in memory, for libsndfile's virtual input.
struct SoundBytes {
  std::span<const std::byte> bytes;
  sf_count_t at = 0;

  static SoundBytes& of(void* user) { return *static_cast<SoundBytes*>(user); }
  static sf_count_t length(void* user) { return static_cast<sf_count_t>(of(user).bytes.size()); }
  static sf_count_t tell(void* user) { return of(user).at; }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    SoundBytes& file = of(user);
    const sf_count_t size = length(user);
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.at : size;
    // A bounded offset keeps the sum of two positions from overflowing.
    if (offset < -size || offset > size) return -1;
    file.at = std::clamp<sf_count_t>(base + offset, 0, size);
    return file.at;
  }
  static sf_count_t read(void* to, sf_count_t count, void* user) {
    SoundBytes& file = of(user);
    const sf_count_t left = length(user) - file.at;
    const sf_count_t taken = std::clamp<sf_count_t>(count, 0, left);
    if (taken > 0) std::memcpy(to, file.bytes.data() + file.at, static_cast<size_t>(taken));
    file.at += taken;
    return taken;
  }
};

/// Appends samples to a vector at another rate.
class Resampler {
 public:
  Resampler(uint32_t from, uint32_t to) : ratio_(static_cast<double>(to) / from) {
    if (from == to) return;
    int error = 0;
    state_.reset(src_new(SRC_SINC_MEDIUM_QUALITY, 1, &error));
    if (!state_) throw ModelError("", std::string("resampling: ") + src_strerror(error), "");
    block_.resize(kBlockFrames);
  }

  /// last: no samples follow, so the samples still in the filter are appended as well.
  void append(std::span<const float> samples, bool last, std::vector<float>& result) {
    if (!state_) {
      result.insert(result.end(), samples.begin(), samples.end());
      return;
    }
    SRC_DATA data = {};
    data.src_ratio = ratio_;
    data.end_of_input = last;
    data.data_out = block_.data();
    data.output_frames = static_cast<long>(block_.size());
    do {
      data.data_in = samples.data();
      data.input_frames = static_cast<long>(samples.size());
      if (const int error = src_process(state_.get(), &data); error != 0)
        throw ModelError("", std::string("resampling: ") + src_strerror(error), "");
      samples = samples.subspan(static_cast<size_t>(data.input_frames_used));
      result.insert(result.end(), block_.begin(), block_.begin() + data.output_frames_gen);
    } while (!samples.empty() || (last && data.output_frames_gen > 0));
  }

 private:
  struct Deleter {
    void operator()(SRC_STATE* state) const { src_delete(state); }
  };
  double ratio_;
  std::unique_ptr<SRC_STATE, Deleter> state_;
  std::vector<float> block_;
};

struct SoundCloser {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using SoundHandle = std::unique_ptr<SNDFILE, SoundCloser>;

bool readable_rate(uint32_t rate) { return rate >= kLowestRate && rate <= kHighestRate; }

void check_format(const SF_INFO& info, const std::string& name, const SoundLimits& limits) {
  if (info.channels < 1 || static_cast<uint32_t>(info.channels) > limits.max_channels)
    throw ModelError(
        name, fmt::format("{} channels, at most {} are read", info.channels, limits.max_channels),
        "mix it down first");
  if (info.samplerate < 0 || !readable_rate(static_cast<uint32_t>(info.samplerate)))
    throw ModelError(name,
                     fmt::format("a sample rate of {} Hz, {} to {} Hz are read", info.samplerate,
                                 kLowestRate, kHighestRate),
                     "resample it first");
}

uint32_t little_endian(std::span<const std::byte> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

/// Seconds that the data chunk of a WAV file promises beyond the end of the file; libsndfile
/// ignores this. Programs that write to a pipe do not know the length and claim 2 GiB or more.
double missing_of_wav(std::span<const std::byte> bytes) {
  constexpr uint32_t kUnknownLength = 0x7fff0000;
  const auto is = [&](size_t at, const char* name) {
    return std::memcmp(bytes.data() + at, name, 4) == 0;
  };
  if (bytes.size() < 12 || !is(0, "RIFF") || !is(8, "WAVE")) return 0;
  uint32_t bytes_per_second = 0;
  for (uint64_t at = 12; at + 8 <= bytes.size();) {
    const uint32_t size = little_endian(bytes, at + 4);
    if (is(at, "fmt ") && at + 20 <= bytes.size()) bytes_per_second = little_endian(bytes, at + 16);
    const uint64_t there = bytes.size() - (at + 8);
    if (is(at, "data"))
      return size >= kUnknownLength || size <= there || bytes_per_second == 0
                 ? 0
                 : static_cast<double>(size - there) / bytes_per_second;
    at += 8 + uint64_t{size} + size % 2;
  }
  return 0;
}

/// frames: (n, channels).
void average_channels(std::span<const float> frames, size_t channels, std::vector<float>& mono) {
  mono.resize(frames.size() / channels);
  for (size_t i = 0; i < mono.size(); ++i) {
    double sum = 0;
    for (size_t c = 0; c < channels; ++c) sum += frames[i * channels + c];
    mono[i] = static_cast<float>(sum / static_cast<double>(channels));
  }
}

}  // namespace

Sound read_sound(std::span<const std::byte> bytes, const std::string& name, uint32_t sample_rate,
                 const SoundLimits& limits) {
  if (!begins_as_sound(bytes))
    throw ModelError(name, "not a sound file in WAV, FLAC, Ogg or MP3",
                     "convert it to one of them, or give raw samples on standard input");
  SoundBytes input{bytes};
  SF_VIRTUAL_IO calls = {SoundBytes::length, SoundBytes::seek, SoundBytes::read, SoundBytes::write,
                         SoundBytes::tell};
  SF_INFO info = {};
  const SoundHandle file(sf_open_virtual(&calls, SFM_READ, &info, &input));
  if (!file)
    throw ModelError(name, std::string("libsndfile: ") + sf_strerror(nullptr),
                     "the file may be cut short or damaged");
  check_format(info, name, limits);

  const auto channels = static_cast<size_t>(info.channels);
  const double max_frames = limits.max_seconds * info.samplerate;
  Resampler resampler(static_cast<uint32_t>(info.samplerate), sample_rate);
  std::vector<float> frames(kBlockFrames * channels), mono;
  Sound result;
  for (uint64_t done = 0;;) {
    const sf_count_t read = sf_readf_float(file.get(), frames.data(), kBlockFrames);
    if (read < 0 || sf_error(file.get()) != SF_ERR_NO_ERROR)
      throw ModelError(name, fmt::format("after {} samples: {}", done, sf_strerror(file.get())),
                       "the file may be cut short or damaged");
    const std::span<const float> taken(frames.data(), static_cast<size_t>(read) * channels);
    average_channels(taken, channels, mono);
    check_samples(mono, name, done);
    const bool last = static_cast<size_t>(read) < kBlockFrames;
    resampler.append(mono, last, result.samples);
    done += mono.size();
    if (last) break;
    if (static_cast<double>(done) > max_frames)
      throw ModelError(name, fmt::format("longer than {} seconds", limits.max_seconds),
                       "cut it into pieces");
  }
  result.missing_seconds = missing_of_wav(bytes);
  return result;
}

Sound read_sound(const std::filesystem::path& path, uint32_t sample_rate,
                 const SoundLimits& limits) {
  const MappedFile file(path);
  return read_sound(file.bytes(), path.string(), sample_rate, limits);
}

std::vector<float> resampled(std::span<const float> samples, uint32_t from_rate, uint32_t to_rate) {
  if (!readable_rate(from_rate))
    throw ModelError("sound",
                     fmt::format("a sample rate of {} Hz, {} to {} Hz are read", from_rate,
                                 kLowestRate, kHighestRate),
                     "resample it first");
  std::vector<float> result;
  if (!samples.empty()) Resampler(from_rate, to_rate).append(samples, true, result);
  return result;
}

#else

std::vector<float> resampled(std::span<const float>, uint32_t from_rate, uint32_t to_rate) {
  throw ModelError("sound",
                   fmt::format("cannot be resampled from {} Hz: this build was made without "
                               "libsamplerate",
                               from_rate),
                   fmt::format("give samples at {} Hz", to_rate));
}

Sound read_sound(std::span<const std::byte>, const std::string& name, uint32_t,
                 const SoundLimits&) {
  throw ModelError(name, "this build has no sound files: MULCIBER_AUDIO",
                   "install libsndfile1-dev and libsamplerate0-dev and build with "
                   "-DMULCIBER_AUDIO=ON, or give raw samples");
}

Sound read_sound(const std::filesystem::path& path, uint32_t sample_rate,
                 const SoundLimits& limits) {
  return read_sound(std::span<const std::byte>(), path.string(), sample_rate, limits);
}

#endif

}  // namespace mulciber
