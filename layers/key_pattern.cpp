#include "layers/key_pattern.h"

#include <algorithm>
#include <functional>
#include <random>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {
namespace {

uint32_t blocks_of(uint32_t length, uint32_t block) { return (length + block - 1) / block; }

/// Lists all pairs of blocks that `sees` accepts.
BlockSparseKeys square_pattern(uint32_t length, uint32_t block,
                               const std::function<bool(uint32_t, uint32_t)>& sees) {
  std::vector<std::vector<uint32_t>> lists(blocks_of(length, block));
  for (uint32_t q = 0; q < lists.size(); ++q) {
    for (uint32_t k = 0; k < lists.size(); ++k) {
      if (sees(q, k)) lists[q].push_back(k);
    }
  }
  return block_sparse_keys(block, block, lists);
}

bool contains(const std::vector<uint32_t>& list, uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void check_block(uint32_t block) {
  if (block == 0)
    throw ShapeError("pattern of keys", "blocks of no keys", "give blocks of 1 or more");
}

}  // namespace

uint64_t BlockSparseKeys::pairs() const {
  if (pattern.query_blocks == 0) return 0;
  return uint64_t{words[pattern.query_blocks] - words[0]} * pattern.block_queries *
         pattern.block_keys;
}

BlockSparseKeys block_sparse_keys(uint32_t block_queries, uint32_t block_keys,
                                  const std::vector<std::vector<uint32_t>>& lists) {
  check_block(block_queries);
  check_block(block_keys);
  BlockSparseKeys result;
  result.pattern = {block_queries, block_keys, static_cast<uint32_t>(lists.size())};
  result.words.resize(lists.size() + 1);
  for (size_t b = 0; b < lists.size(); ++b) {
    result.words[b] = static_cast<uint32_t>(result.words.size());
    const auto unordered =
        std::adjacent_find(lists[b].begin(), lists[b].end(), std::greater_equal<>());
    if (unordered != lists[b].end()) {
      throw ShapeError("pattern of keys",
                       fmt::format("the list of block {} is not ascending after {}", b, *unordered),
                       "sort it, and name each block once");
    }
    result.words.insert(result.words.end(), lists[b].begin(), lists[b].end());
  }
  result.words[lists.size()] = static_cast<uint32_t>(result.words.size());
  return result;
}

BlockSparseKeys longformer_keys(uint32_t length, uint32_t window,
                                const std::vector<uint32_t>& global_tokens, uint32_t block) {
  check_block(block);
  std::vector<bool> global_block(blocks_of(length, block));
  std::vector<uint32_t> globals((length + 31) / 32);
  for (uint32_t token : global_tokens) {
    if (token >= length) {
      throw ShapeError("pattern of keys", fmt::format("token {} of {} is global", token, length),
                       "name tokens that are there");
    }
    globals[token / 32] |= 1u << token % 32;
    global_block[token / block] = true;
  }
  BlockSparseKeys result = square_pattern(length, block, [&](uint32_t q, uint32_t k) {
    // The distance between the nearest query and key of two different blocks.
    const uint64_t distance = q == k ? 0 : uint64_t{q > k ? q - k - 1 : k - q - 1} * block + 1;
    return distance < window || global_block[q] || global_block[k];
  });
  result.globals = std::move(globals);
  return result;
}

BlockSparseKeys bigbird_keys(uint32_t length, const BigBird& bigbird) {
  check_block(bigbird.block);
  return square_pattern(length, bigbird.block, [&](uint32_t q, uint32_t k) {
    return (q > k ? q - k : k - q) <= bigbird.window_blocks || contains(bigbird.global_blocks, q) ||
           contains(bigbird.global_blocks, k) ||
           (q < bigbird.random_blocks.size() && contains(bigbird.random_blocks[q], k));
  });
}

std::vector<std::vector<uint32_t>> random_blocks(uint32_t blocks, uint32_t each, uint32_t seed) {
  std::mt19937 random(seed);  // the C++ standard fixes its numbers, unlike those of distributions
  std::vector<std::vector<uint32_t>> lists(blocks);
  for (std::vector<uint32_t>& list : lists) {
    while (list.size() < std::min(each, blocks)) {
      const uint32_t block = static_cast<uint32_t>(random() % blocks);
      if (!contains(list, block)) list.push_back(block);
    }
    std::sort(list.begin(), list.end());
  }
  return lists;
}

}  // namespace mulciber
