// Prompt lookup: draft tokens from the text itself. Source: Saxena 2023, prompt lookup decoding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mulciber {

/// The `count` tokens behind the latest earlier occurrence of the last `longest`
/// tokens, or else of fewer of them, down to two (or `longest`). Where the text ends before so
/// many, its tokens from there on are repeated. Empty where nothing occurred before.
std::vector<uint32_t> prompt_lookup(std::span<const uint32_t> ids, uint32_t longest,
                                    uint32_t count);

}  // namespace mulciber
