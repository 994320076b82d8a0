// Encodes sources a few at a time, for searches whose items begin at different steps.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "models/translation/encoder_decoder_programs.h"
#include "runtime/device_copy.h"

namespace mulciber {

/// A source and its slot in a search.
struct PlacedSource {
  uint32_t slot = 0;
  std::span<const uint32_t> ids;
};

/// The result of a source depends on the source and on the number of the search's slots alone:
/// sources are encoded beside others of like length only, padded to a length that follows from
/// their own, by the kernels that a batch of all slots would take. Not thread-safe. Must not
/// outlive the device or the network's weights.
class SourceEncoder {
 public:
  SourceEncoder(Device& device, const EncoderDecoderNetwork& network);
  ~SourceEncoder();

  /// Encodes sources of that search, and writes the memory to which its steps attend. The search
  /// must keep items apart, and must have nothing under way. next: sources that wait for slots;
  /// where few are to be encoded, the first of these are encoded with them and kept for the next
  /// call.
  void encode(const SearchPrograms& search, std::span<const PlacedSource> sources,
              std::span<const std::vector<uint32_t>> next, const HeadMasks& head_masks,
              uint32_t pad);
  /// The length to which a source is padded.
  uint32_t padded_length(uint32_t length) const;
  /// Device memory of the programs that are kept.
  uint64_t kept_bytes() const;
  /// Drops the kept programs.
  void trim();

 private:
  struct Encoding;  // a program for so many sources of one length
  void add_copies(const Encoding& from, uint32_t item, const SearchPrograms& search, uint32_t slot,
                  std::vector<DeviceCopy>& copies) const;
  Encoding& encoding(uint32_t items, uint32_t length, uint32_t slots);

  Device& device_;
  const EncoderDecoderNetwork& network_;
  std::list<std::unique_ptr<Encoding>> programs_;  // most recently used first
};

}  // namespace mulciber
