// The page of `mulciber transcribe --attention`.
#pragma once

#include <string>
#include <vector>

#include "mulciber/transcriber.h"

namespace mulciber::apps {

/// Collects the maps of a sound, window by window.
class SpokenAttentionPage {
 public:
  SpokenAttentionPage(std::string model, std::string sound)
      : model_(std::move(model)), sound_(std::move(sound)) {}

  /// Adds a window. Weights become bytes, 255 for each token's greatest; so does the spectrogram.
  void add(const SpokenAttention& attention);
  bool empty() const { return windows_.empty(); }
  /// Writes one page that needs no other file and no network. Throws ModelError when it cannot be
  /// written.
  void write(const std::string& path) const;

 private:
  std::string model_, sound_;
  std::vector<std::string> windows_;  // in JSON
};

}  // namespace mulciber::apps
