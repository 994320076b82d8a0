// What of a text that has outgrown the context the model still sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mulciber {

/// Least room behind the tokens that stay: what comes is cut in halves of it.
constexpr uint32_t kLeastShiftRoom = 4;

/// How many tokens behind the first `keep` go so that of `count` tokens fewer than `context` are
/// left: a multiple of half the room behind `keep`. A text that grows from its end thus loses more
/// only once another half has come, and what was computed for the rest serves until then. context:
/// at least keep + kLeastShiftRoom.
size_t left_out_tokens(size_t count, uint32_t keep, uint32_t context);

/// The ids that stay.
std::vector<uint32_t> shifted(std::span<const uint32_t> ids, uint32_t keep, uint32_t context);

}  // namespace mulciber
