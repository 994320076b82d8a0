// The page of `mulciber transcribe --attention`.
#pragma once

#include <string>
#include <vector>

#include "mulciber/transcriber.h"

namespace mulciber::apps {

/// The maps of a sound, window by window.
class SpokenAttentionPage {
 public:
  SpokenAttentionPage(std::string model, std::string sound)
      : model_(std::move(model)), sound_(std::move(sound)) {}

  /// Takes a window. Weights become bytes, each token's greatest 255, and so does the spectrogram.
  void add(const SpokenAttention& attention);
  bool empty() const { return windows_.empty(); }
  /// One page that needs no other file and no network. Throws ModelError when it cannot be written.
  void write(const std::string& path) const;

 private:
  std::string model_, sound_;
  std::vector<std::string> windows_;  // JSON
};

}  // namespace mulciber::apps
