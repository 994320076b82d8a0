// Cases and reference of top_k; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/sample_reference.h"
#include "mulciber/error.h"
#include "ops/search.h"

namespace mulciber::conformance {

namespace {

constexpr uint32_t kTopKNever = 0xffffffff;

struct TopKVariant {
  std::vector<uint32_t> banned;
  uint32_t spare_banned = 0;  // additional room for banned ids
  uint32_t position = 7;
  /// Rows of an item; 0: one position and one set of rules for all. Each item is one position
  /// behind the previous one; the rules of every other item also refer to such positions.
  uint32_t item_rows = 0;
  uint32_t forced_index = kTopKNever, forced_id = 0;
  uint32_t first_index = kTopKNever, first_id = 0;  // the second forced id
  uint32_t late_from = 0;                           // `late` is not chosen at positions below
  std::vector<uint32_t> late = {};
  double levels = 0;        // above 0: logits are multiples of 1 / levels, so that many are equal
  bool odd_values = false;  // -inf in all rows; rows of only NaN or -inf, with a NaN, with inf
  double offset = 0;
  uint32_t repeats = 0;  // room for ids of each row, one for each position
  uint32_t words = 0;    // room for other ids before them
  uint64_t spare = 0;    // columns of the logits after the vocabulary, which are ignored
};

class TopKCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,vocabulary,k"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 6000, 2},  {5, 6000, 10}, {80, 6000, 10},
            {1, 60000, 2}, {4, 60000, 8}, {64, 60000, 16}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 3 || std::ranges::count(shape, uint64_t{0}) > 0 || shape[2] > 64 ||
        shape[2] > shape[1]) {
      throw ShapeError("top k", "a shape is three positive numbers, k up to 64 and the vocabulary",
                       "give rows,vocabulary,k such as 4,60000,8");
    }
    return variant(shape[0], shape[1], static_cast<uint32_t>(shape[2]), types,
                   {.banned = {static_cast<uint32_t>(shape[1] - 1)}});
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    auto add = [&](uint64_t rows, uint64_t vocabulary, uint32_t k, TopKVariant options = {}) {
      cases.push_back(variant(rows, vocabulary, k, types, std::move(options)));
    };
    auto range = [](uint32_t first, uint32_t last) {
      std::vector<uint32_t> ids(last - first);
      std::iota(ids.begin(), ids.end(), first);
      return ids;
    };
    for (uint64_t vocabulary : {1, 2, 3, 4, 7, 31, 64, 127, 128, 129, 255, 256, 257, 1000, 1027}) {
      for (uint32_t k : {1, 2, 5, 8, 64}) {
        if (k <= vocabulary) add(2, vocabulary, k);
      }
    }
    add(1, 6000, 2);
    add(7, 6007, 16);
    add(3, 60000, 8);
    add(2, 65537, 64);
    add(2, 262144, 10);
    for (double levels : {0.25, 1.0, 8.0}) {
      add(3, 50, 20, {.levels = levels});
      add(3, 1001, 64, {.levels = levels});
      add(2, 20000, 9, {.levels = levels});
    }
    add(4, 300, 6, {.offset = 1e4});
    add(7, 260, 8, {.odd_values = true});
    add(7, 67, 64, {.odd_values = true});
    add(7, 5000, 3, {.banned = {7, 0, 4999}, .odd_values = true});
    add(7, 5003, 4, {.forced_index = 8, .forced_id = 2, .odd_values = true});
    // Rules: some ids, repeated ids, more room than ids, ids past the vocabulary, all ids but a
    // few, all ids.
    add(3, 40, 4, {.banned = {0}});
    add(3, 40, 40, {.banned = {39, 39, 12}, .spare_banned = 5});
    add(3, 400, 2, {.banned = range(0, 399)});
    add(3, 130, 8, {.banned = range(5, 130)});
    add(2, 130, 9, {.banned = range(0, 130)});
    add(2, 30, 3, {.banned = {1000, 0xfffffffe}});
    add(3, 1000, 5, {.banned = range(100, 900), .levels = 1});
    // An id forced at this index and at another one.
    add(2, 90, 4, {.forced_index = 8, .forced_id = 2});
    add(2, 90, 6, {.forced_index = 8, .forced_id = 89});
    add(2, 90, 1, {.forced_index = 8, .forced_id = 0});
    add(2, 90, 4, {.banned = {2}, .forced_index = 8, .forced_id = 2});
    add(2, 90, 4, {.forced_index = 7, .forced_id = 2});
    // Two forced ids, at one index and at different ones; an id that comes too early, and one in
    // time.
    add(2, 90, 4, {.first_index = 8, .first_id = 5});
    add(2, 90, 4, {.forced_index = 8, .forced_id = 2, .first_index = 8, .first_id = 5});
    add(2, 90, 4, {.forced_index = 9, .forced_id = 2, .first_index = 8, .first_id = 5});
    for (uint32_t late_from : {7, 8, 9, 100}) {
      add(9, 12, 6, {.late_from = late_from, .late = {3}});
      add(9, 12, 6, {.late_from = late_from, .late = {0, 7, 11}});
      add(3, 400, 2, {.banned = range(0, 399), .late_from = late_from, .late = {399}});
    }
    // Ids of a single row: fewer than there is room for, and as many.
    for (uint32_t room : {20u, 8u, 5u}) {
      add(5, 30, 30, {.repeats = room});
      add(5, 1000, 3, {.banned = {4}, .levels = 1, .repeats = room});
      add(2, 6007, 16, {.levels = 0.25, .repeats = room});
    }
    for (uint32_t words : {1u, 5u, 40u}) {
      add(5, 30, 30, {.words = words});
      add(5, 30, 30, {.repeats = 20, .words = words});
      add(2, 6007, 16, {.levels = 0.25, .repeats = 5, .words = words});
    }
    add(300, 1030, 4, {.repeats = 12});
    // Items at positions of their own: of one row, of several rows, with an incomplete last item.
    for (uint32_t item_rows : {1u, 2u, 5u}) {
      add(9, 70, 5, {.item_rows = item_rows, .late_from = 6, .late = {3, 8}, .repeats = 12});
      add(9, 1030, 4, {.item_rows = item_rows, .forced_index = 8, .forced_id = 9});
      add(9, 1001, 6,
          {.item_rows = item_rows,
           .forced_index = 8,
           .forced_id = 2,
           .first_index = 6,
           .first_id = 5,
           .levels = 1,
           .repeats = 3,
           .words = 2});
    }
    add(300, 1030, 4, {.item_rows = 4, .forced_index = 8, .forced_id = 2, .repeats = 12});
    // Rows wider than the vocabulary: whole fours whose last columns are ignored.
    for (uint64_t spare : {1, 2, 3, 9}) {
      add(3, 33 - spare, 5, {.spare = spare});
      add(3, 1033 - spare, 5, {.levels = 1, .spare = spare});
    }
    add(7, 999, 8, {.odd_values = true, .spare = 1});
    // Logits above 1 MiB: several nodes where the storage range is that small.
    add(300, 1030, 4);
    add(9, 32771, 12);
    return cases;
  }

 private:
  /// BeamItem's layout, with unused words before it.
  struct ItemRules {
    uint32_t unused[3];
    shader::PositionRules rules;
  };
  static uint32_t position_of(const TopKVariant& options, uint32_t row) {
    const uint32_t item = options.item_rows > 0 ? row / options.item_rows : 0;
    return options.position - std::min(options.position, item);
  }
  static shader::PositionRules rules_of(const TopKVariant& options, uint32_t item) {
    const auto moved = [&](uint32_t index) {
      return index == kTopKNever || item % 2 == 0 ? index : index - std::min(index, item);
    };
    return {.last = {moved(options.forced_index), options.forced_id + item},
            .first = {moved(options.first_index), options.first_id},
            .late_from = options.late_from};
  }

  static OpCase variant(uint64_t rows, uint64_t vocabulary, uint32_t k, KernelTypes types,
                        TopKVariant options) {
    OpCase c;
    c.types = types;
    c.name = fmt::format("r{}_v{}_k{}", rows, vocabulary, k);
    if (!options.banned.empty()) c.name += fmt::format(".banned_{}", options.banned.size());
    if (options.forced_index != kTopKNever) {
      c.name += fmt::format(".forced_{}_at_{}", options.forced_id, options.forced_index);
    }
    if (options.first_index != kTopKNever)
      c.name += fmt::format(".first_{}_at_{}", options.first_id, options.first_index);
    if (options.late_from > 0)
      c.name += fmt::format(".late_{}_from_{}", fmt::join(options.late, "_"), options.late_from);
    if (options.item_rows > 0) c.name += fmt::format(".items_of_{}", options.item_rows);
    if (options.repeats > 0) c.name += fmt::format(".repeats_{}", options.repeats);
    if (options.words > 0) c.name += fmt::format(".words_{}", options.words);
    if (options.levels > 0) c.name += fmt::format(".ties_{}", name_part(options.levels));
    if (options.odd_values) c.name += ".odd_values";
    if (options.offset != 0) c.name += ".offset";
    if (options.spare > 0) c.name += fmt::format(".spare_{}", options.spare);

    // Few logits are close together: the logarithm of a probability near one is mostly rounding.
    const uint64_t stride = vocabulary + options.spare;
    CaseInput logits = normal_input({rows, stride}, DataType::kF32, vocabulary < 8 ? 0.5 : 3);
    logits.fill = [=, normal = logits.fill](std::vector<double>& values, std::mt19937& random) {
      normal(values, random);
      for (double& value : values) {
        if (options.levels > 0) value = std::round(value * options.levels) / options.levels;
        value += options.offset;
      }
      for (size_t i = 0; i < values.size(); ++i) {
        if (i % stride >= vocabulary) values[i] = i % 2 == 0 ? kInfinity : 100;
      }
      if (!options.odd_values) return;
      for (size_t i = 1; i < values.size(); i += 7) values[i] = -kInfinity;
      for (uint64_t i = 0; i < vocabulary; ++i) {
        values[i] = std::nan("");
        values[stride + i] = -kInfinity;
        values[2 * stride + i] = i == 5 ? 1 : -kInfinity;
      }
      values[3 * stride + vocabulary / 2] = kInfinity;
      values[4 * stride + vocabulary - 1] = std::nan("");
      values[5 * stride + 7] = std::nan("");  // banned in one case
    };
    // Unused words are placed before, between and after the rules.
    ControlLayout layout(1);
    TokenRules rules;
    const uint32_t items =
        options.item_rows > 0
            ? static_cast<uint32_t>((rows + options.item_rows - 1) / options.item_rows)
            : 1;
    rules.position = layout.add<uint32_t>(options.item_rows > 0 ? rows : 1);
    const auto by_item = layout.add<ItemRules>(items);
    rules.by_position = by_item.field(&ItemRules::rules);
    rules.rules_rows = options.item_rows;
    rules.rules_stride = options.item_rows > 0 ? by_item.kWords : 0;
    layout.add<uint32_t>(1);
    rules.banned = layout.add_list(options.banned.size() + options.spare_banned);
    const uint32_t by_row = options.words + options.repeats;
    if (!options.late.empty()) rules.ends = layout.add_list(options.late.size() + 1);
    if (by_row > 0) rules.forbidden = layout.add<uint32_t>(rows * by_row);
    rules.forbidden_row = by_row;
    rules.forbidden_first = options.words;
    ControlWords control(layout.words() + 1, kTopKNever);
    for (uint32_t row = 0; row < rules.position.count; ++row)
      control.set(rules.position, row, position_of(options, row));
    for (uint32_t item = 0; item < items; ++item)
      control.set(by_item.field(&ItemRules::rules, item), 0, rules_of(options, item));
    control.fill(rules.banned, 3);
    control.set_list(rules.banned, options.banned);
    if (rules.ends) control.set_list(*rules.ends, options.late);
    // Words after the position are ignored.
    std::vector<uint32_t> forbidden(rows * by_row);
    std::mt19937 random(1);
    for (uint32_t& id : forbidden)
      id = random() % 3 == 0 ? kTopKNever : static_cast<uint32_t>(random() % vocabulary);
    if (rules.forbidden) control.set(*rules.forbidden, forbidden);
    c.inputs = {logits, words_input(control.words())};
    c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      Tensor result = top_k(builder, inputs[0], k, inputs[1], rules, vocabulary);
      // The words appear twice: as floats for the values, as words for the ids.
      std::vector<Tensor> outputs = {words_of(result, DataType::kF32, 0, rows * k * 2),
                                     words_of(result, DataType::kU32, 0, rows * k * 2)};
      for (Tensor& output : outputs) output.shape = {rows, k * 2ull};
      return outputs;
    };
    const bool edge_of_a_tile = vocabulary % 2 == 1 && (vocabulary < 4 || k == 2 || k == 64);
    c.must_pass = vocabulary <= 300
                      ? edge_of_a_tile || k == 5
                      : vocabulary < 10000 && (options.words == 0 || options.words == 5);
    // Ties, rules and odd values leave few different results, which is what such a case is about.
    c.degenerate = options.levels > 0 || options.odd_values || !options.banned.empty() ||
                   options.forced_index != kTopKNever || options.first_index != kTopKNever ||
                   options.late_from > 0 || by_row > 0;
    c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor values{{rows, k * 2ull}, DataType::kF32, {}, {}}, ids = values;
      ids.type = DataType::kU32;
      for (uint64_t row = 0; row < rows; ++row) {
        const double* logits = inputs[0].values.data() + row * stride;
        std::vector<double> key(logits, logits + vocabulary);
        const auto at = static_cast<uint32_t>(row);
        const uint32_t chosen = position_of(options, at) + 1;
        const shader::PositionRules by_position =
            rules_of(options, options.item_rows > 0 ? at / options.item_rows : 0);
        const bool last = by_position.last.index == chosen;
        const bool forced = last || by_position.first.index == chosen;
        const uint32_t forbidden_that_count = std::min(by_row, options.words + chosen);
        if (!are_logits(key) && !forced) {
          for (uint32_t rank = 0; rank < k; ++rank) {
            append(values, Bounded(-kInfinity));
            append(ids, Bounded(0, kInfinity));
            append(values, Bounded(0, kInfinity));
            append(ids, Bounded(kTopKNever));
          }
          continue;
        }
        const double maximum = *std::ranges::max_element(key);
        double sum = 0, error = 0;
        for (double value : key) {
          if (value == -kInfinity) continue;
          const Bounded term = exp(Bounded(value) - Bounded(maximum));
          sum += term.value;
          error += term.error;
        }
        const Bounded shift =
            log(Bounded(sum, error + sum_error(static_cast<double>(vocabulary), sum)));
        for (uint32_t id : options.banned) {
          if (id < vocabulary) key[id] = -kInfinity;
        }
        for (uint32_t id : options.late)
          if (chosen < by_position.late_from) key[id] = -kInfinity;
        for (uint32_t i = 0; i < forbidden_that_count; ++i) {
          const uint32_t id = forbidden[row * by_row + i];
          if (id != kTopKNever) key[id] = -kInfinity;
        }
        if (forced) {
          std::ranges::fill(key, -kInfinity);
          key[last ? by_position.last.id : by_position.first.id] = 0;
        }
        std::vector<uint32_t> order(vocabulary);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::partial_sort(order, order.begin() + k, [&](uint32_t a, uint32_t b) {
          return key[a] > key[b] || (key[a] == key[b] && a < b);
        });
        for (uint32_t rank = 0; rank < k; ++rank) {
          const uint32_t id = order[rank];
          Bounded value(key[id]);
          if (!forced && key[id] > -kInfinity) value = value - Bounded(maximum) - shift;
          append(values, value);
          append(ids, Bounded(0, kInfinity));
          append(values, Bounded(0, kInfinity));
          append(ids, Bounded(id));
        }
      }
      return std::vector<CpuTensor>{values, ids};
    };
    return c;
  }
};

}  // namespace

const OpCases& top_k_cases() {
  static const TopKCases cases;
  return cases;
}

}  // namespace mulciber::conformance
