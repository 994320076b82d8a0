// A sequence's tokens, keys and values in a file.
#pragma once

#include <string>

#include "checkpoints/checkpoint.h"
#include "models/decoding/sequence_batch.h"

namespace mulciber {

/// A number that two networks share only where keys and values of one serve the other: hashed from
/// names, types, shapes and some bytes of every tensor of the checkpoint, and the forms in which
/// matrices and caches are kept.
uint64_t sequence_fingerprint(const Checkpoint& checkpoint, const DecoderNetwork& network);

/// Throws ModelError when the file cannot be written.
void save_sequence(const std::string& file, const SavedSequence& sequence, uint64_t fingerprint);
/// Throws ModelError when the file is not there, is of something else, of another fingerprint, or
/// damaged.
SavedSequence load_sequence(const std::string& file, uint64_t fingerprint);

}  // namespace mulciber
