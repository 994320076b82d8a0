// A sequence's tokens, keys and values in a file, or in memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/checkpoint.h"
#include "models/generation/sequence_slots.h"

namespace mulciber {

/// A number that two networks share only where the KV cache of one serves the other: a hash of the
/// names, types, shapes and some bytes of every tensor of the checkpoint, of the types of matrices,
/// activations and cache, of LongRoPE's original context, and of head masks.
uint64_t sequence_fingerprint(const Checkpoint& checkpoint, const DecoderNetwork& network);

std::vector<std::byte> sequence_bytes(const SavedSequence& sequence, uint64_t fingerprint);
/// Throws ModelError when the bytes are not a saved sequence, have another fingerprint, or are
/// damaged.
SavedSequence read_sequence(std::span<const std::byte> bytes, uint64_t fingerprint);

/// Writes sequence_bytes() to a file. Throws ModelError when it cannot be written.
void save_sequence(const std::string& file, const SavedSequence& sequence, uint64_t fingerprint);
/// Reads a file as read_sequence() does. Throws ModelError also when the file is not there.
SavedSequence load_sequence(const std::string& file, uint64_t fingerprint);

}  // namespace mulciber
