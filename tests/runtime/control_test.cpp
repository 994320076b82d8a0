#include "ops/control.h"

#include <algorithm>
#include <stdexcept>

#include "mulciber/error.h"
#include "ops/sampling.h"
#include "ops/search.h"
#include "tests/catch.h"

using namespace mulciber;

namespace {

struct Entry {
  uint32_t id;
  float weight;
  uint32_t spare;
};

Tensor control_of(uint64_t words, DataType type = DataType::kU32) {
  Tensor control;
  control.shape = {words};
  control.type = type;
  return control;
}

}  // namespace

TEST_CASE("Arrays of control stand one after the other, structs at multiples of their size") {
  ControlLayout layout(2);
  const ControlArray<uint32_t> ids = layout.add<uint32_t>(5);
  const ControlArray<Entry> entries = layout.add<Entry>(2);
  const ControlArray<uint32_t> list = layout.add_list(3);
  CHECK(ids.word == 2);
  CHECK(ids.end() == 7);
  CHECK(entries.word == 9);
  CHECK(entries.index() == 3);
  CHECK(entries.end() == 15);
  CHECK(entries.field(&Entry::weight, 1).word == 13);
  CHECK(list.word == 15);
  CHECK(list.count == 4);
  CHECK(layout.words() == 19);
  CHECK(ids.part(1, 2).word == 3);
  CHECK(entries.part(1, 1).word == 12);

  ControlWords words(layout.words(), 7);
  words.set(entries, 1, {3, 0.5f, 9});
  CHECK(words.get(entries, 1).id == 3);
  CHECK(words.get(entries.field(&Entry::weight, 1)) == 0.5f);
  CHECK(words.words()[12] == 3);
  const std::vector<uint32_t> two = {10, 11};
  words.set_list(list, two);
  CHECK(words.values(list)[0] == 2);
  CHECK(words.values(list)[2] == 11);
  words.fill(ids, 1);
  CHECK(words.words()[1] == 7);
  CHECK(words.words()[6] == 1);
  CHECK(words.words()[7] == 7);
  CHECK_THROWS_AS(ControlWords(2).get(ids), std::out_of_range);
  CHECK_THROWS_AS(ControlWords(8).get(entries), std::out_of_range);
}

TEST_CASE("Arrays are added at the end of the CPU's copy") {
  ControlWords words(2, 7);
  const ControlArray<float> factors = words.append(std::vector{0.25f, 0.5f});
  const ControlArray<Entry> entries = words.append(std::vector<Entry>{{1, 0.5f, 2}});
  const ControlArray<uint32_t> none = words.append(std::vector<uint32_t>());
  CHECK(factors.word == 2);
  CHECK(words.get(factors, 1) == 0.5f);
  CHECK(entries.word == 6);
  CHECK(words.get(entries).id == 1);
  CHECK(none.word == 9);
  CHECK(none.count == 0);
  CHECK(words.size() == 9);
}

TEST_CASE("Control is at most 4 GiB, and holds what it is asked for") {
  ControlLayout layout;
  layout.add<uint32_t>(1u << 29);
  CHECK_THROWS_AS(layout.add<uint32_t>(1u << 29), ShapeError);
  const ControlArray<uint32_t> array{4, 3};
  CHECK(fits(array, 3, control_of(7)));
  CHECK_FALSE(fits(array, 3, control_of(6)));
  CHECK_FALSE(fits(array, 4, control_of(99)));
  CHECK_FALSE(fits(array, 3, control_of(7, DataType::kF32)));
  CHECK(word_or_none(std::optional(array)) == 4);
  CHECK(word_or_none(std::optional<ControlArray<uint32_t>>()) == -1);
}

TEST_CASE("One element serves all rows, or each row has its own") {
  CHECK(serves_rows(ControlArray<uint32_t>{0, 1}, 5));
  CHECK(serves_rows(ControlArray<uint32_t>{0, 5}, 5));
  CHECK_FALSE(serves_rows(ControlArray<uint32_t>{0, 4}, 5));
  CHECK(stride_of(ControlArray<uint32_t>{0, 1}) == 0);
  CHECK(stride_of(ControlArray<uint32_t>{0, 5}) == 1);
}

TEST_CASE("States of search and sampling do not overlap in one control") {
  ControlLayout layout;
  const BeamStateLayout beams = plan_beam_state(layout, 2, 3, 4, {.banned = 2});
  const uint32_t between = layout.words();
  const SampleStateLayout rows = plan_sample_state(layout, 3, 4, 1, 1);
  CHECK(beams.forbidden.end() == between);
  CHECK(rows.positions.word == between);
  CHECK(rows.settings.word % ControlArray<shader::SampleSettings>::kWords == 0);
  ControlWords words(layout.words());
  initialize_beam_state(words, beams,
                        {.ends = {5}, .max_length = 4, .length_penalty = 0.5f, .banned = {}});
  const std::vector<uint32_t> before = words.words();
  initialize_sample_state(words, rows, std::vector<SampleRow>(3));
  CHECK(std::equal(before.begin(), before.begin() + between, words.words().begin()));
  CHECK(words.get(beams.search).length_penalty == 0.5f);
  CHECK(words.get(beams.positions) == 0);
  CHECK(words.get(beams.rules().by_position).last.index == 0xffffffff);
}
