// Context shift: which tokens of a text that has outgrown the context the model still sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mulciber {

/// The least room (context - keep) behind the tokens that stay. Tokens are dropped in multiples of
/// half that room.
constexpr uint32_t kLeastShiftRoom = 4;

/// How many tokens behind the first `keep` are dropped so that fewer than `context` of `count`
/// tokens are left: a multiple of half of context - keep. A growing text thus drops more tokens
/// only once another half has come, and the cache of the others is of use until then. context: at
/// least keep + kLeastShiftRoom.
size_t left_out_tokens(size_t count, uint32_t keep, uint32_t context);

/// The ids that are left.
std::vector<uint32_t> shifted(std::span<const uint32_t> ids, uint32_t keep, uint32_t context);

}  // namespace mulciber
