// Patterns of keys: which keys the lists hold, how the lists grow, and what is refused.
#include "layers/key_pattern.h"

#include "layers/attention_family.h"
#include "mulciber/error.h"
#include "tests/catch.h"

using namespace mulciber;

TEST_CASE("Sparse patterns list pairs in proportion to the length") {
  const uint64_t dense = 16384ull * 16384;
  const BlockSparseKeys longformer = longformer_keys(16384, 257, {0}, 64);
  CHECK(longformer.pairs() < dense / 20);
  const BigBird bigbird{.block = 64,
                        .window_blocks = 1,
                        .global_blocks = {0},
                        .random_blocks = random_blocks(256, 3, 1)};
  const uint64_t pairs = bigbird_keys(16384, bigbird).pairs();
  CHECK(pairs < dense / 20);
  const BigBird twice{.block = 64,
                      .window_blocks = 1,
                      .global_blocks = {0},
                      .random_blocks = random_blocks(512, 3, 1)};
  const uint64_t more = bigbird_keys(32768, twice).pairs();
  CHECK(more > 18 * pairs / 10);
  CHECK(more < 22 * pairs / 10);
}

TEST_CASE("Lists hold what they were given, in order") {
  const BlockSparseKeys keys = block_sparse_keys(2, 3, {{0, 4}, {}, {1}});
  CHECK(keys.words == std::vector<uint32_t>{4, 6, 6, 7, 0, 4, 1});
  CHECK(keys.pairs() == 3 * 2 * 3);
  CHECK_THROWS_AS(block_sparse_keys(1, 1, {{1, 0}}), ShapeError);
  CHECK_THROWS_AS(block_sparse_keys(1, 1, {{1, 1}}), ShapeError);
  CHECK_THROWS_AS(block_sparse_keys(0, 1, {}), ShapeError);
  CHECK_THROWS_AS(longformer_keys(10, 3, {10}), ShapeError);
}

TEST_CASE("Random blocks repeat for a seed, differ between seeds, and name no block twice") {
  const auto blocks = random_blocks(20, 4, 5);
  CHECK(blocks == random_blocks(20, 4, 5));
  CHECK(blocks != random_blocks(20, 4, 6));
  for (const auto& list : blocks) {
    REQUIRE(list.size() == 4);
    for (size_t i = 1; i < 4; ++i) CHECK(list[i - 1] < list[i]);
  }
  CHECK(random_blocks(2, 4, 5)[0].size() == 2);  // no more than there are blocks
}

TEST_CASE("T5's buckets are exact near the query and end at the largest distance") {
  const T5Buckets both{}, back{.bidirectional = false};
  CHECK(t5_bucket(0, both) == 0);
  CHECK(t5_bucket(-7, both) == 7);
  CHECK(t5_bucket(7, both) == 23);
  CHECK(t5_bucket(-16, both) == 10);  // a boundary: log(16 / 8) / log(128 / 8) * 8 = 2
  CHECK(t5_bucket(1000, both) == 31);
  CHECK(t5_bucket(5, back) == 0);
  CHECK(t5_bucket(-15, back) == 15);
  CHECK(t5_bucket(-1000, back) == 31);
}

TEST_CASE(
    "ALiBi's slopes halve from head to head, and fill in between for other numbers of heads") {
  CHECK(alibi_slopes(4) == std::vector<float>{0.25f, 0.0625f, 0.015625f, 0.00390625f});
  CHECK(alibi_slopes(6) ==
        std::vector<float>{0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f});
}
