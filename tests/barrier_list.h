// tests/mutants/barriers.txt: for every barrier of every row, which cases fail without it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "conformance/select.h"
#include "runtime/kernel.h"
#include "runtime/spirv_words.h"
#include "tests/support.h"

namespace mulciber::tests {

/// A barrier of a module: `count` instructions from instruction `first`, counted from 0. They are
/// several where a shader has memoryBarrier() before barrier(): on lavapipe of Mesa 22.3 either
/// does what the other does.
struct Barrier {
  size_t first, count;
  const char* kind;  // "control" (of a workgroup), "subgroup", "memory"
};

/// The barriers of a module, in the module's order.
inline std::vector<Barrier> barriers_of(std::span<const uint32_t> module) {
  using namespace spirv;
  std::vector<Barrier> barriers;
  std::map<uint32_t, uint32_t> constants;
  size_t place = 0;
  for_each_instruction(module, [&](uint32_t op, Instruction w) {
    if (op == kOpConstant) constants[w[2]] = w[3];
    if (op == kOpControlBarrier || op == kOpMemoryBarrier) {
      if (barriers.empty() || barriers.back().first + barriers.back().count != place)
        barriers.push_back({place, 0, "memory"});
      ++barriers.back().count;
    }
    if (op == kOpControlBarrier)
      barriers.back().kind = constants[w[1]] == kScopeWorkgroup ? "control" : "subgroup";
    ++place;
  });
  return barriers;
}

/// The module without a barrier. Its shared memory begins as zeros in every workgroup
/// (VK_KHR_zero_initialize_workgroup_memory, which lavapipe does whether or not a device enables
/// it): the values that another workgroup left there may be those that the barrier waits for.
inline std::vector<uint32_t> without(std::span<const uint32_t> module, const Barrier& barrier) {
  using namespace spirv;
  Words words(module.begin(), module.begin() + kHeaderWords);
  std::map<uint32_t, uint32_t> pointed_to;  // by pointer type
  size_t place = 0;
  for_each_instruction(module, [&](uint32_t op, Instruction w) {
    const bool out = place >= barrier.first && place < barrier.first + barrier.count;
    ++place;
    if (out) return;
    if (op == kOpTypePointer) pointed_to[w[1]] = w[3];
    if (op == kOpVariable && w[3] == kClassWorkgroup) {
      const uint32_t zeros = words[kBoundWord]++;
      emit(words, kOpConstantNull, {pointed_to.at(w[1]), zeros});
      emit(words, kOpVariable, {w[1], w[2], w[3], zeros});
      return;
    }
    words.insert(words.end(), w.begin(), w.end());
  });
  return words;
}

/// A line of the list.
struct BarrierLine {
  std::string row;
  size_t number = 0;  // among the row's barriers, from 1
  std::string kind;
  std::map<std::string, std::string> caught;  // name of a case by the name of an order
  std::string reason;                         // why no order catches it, where none does
};

inline std::string barrier_list_file() {
  return (source_dir() / "tests/mutants/barriers.txt").string();
}
inline std::string barrier_page_file() {
  return (source_dir() / "docs/reference/barriers.md").string();
}

/// Reads lines "ROW NUMBER KIND ORDER=CASE..." and "ROW NUMBER KIND unseen REASON", which follow
/// the first empty line; `heading` gets the lines before it.
inline std::vector<BarrierLine> read_barrier_list(std::string* heading = nullptr) {
  std::ifstream in(barrier_list_file());
  std::vector<BarrierLine> lines;
  std::string text;
  while (std::getline(in, text) && !text.empty()) {
    if (heading) *heading += text + '\n';
  }
  while (std::getline(in, text)) {
    BarrierLine& line = lines.emplace_back();
    std::istringstream words(text);
    words >> line.row >> line.number >> line.kind;
    std::string word;
    while (words >> word && word != "unseen") {
      const size_t equals = word.find('=');
      std::string order = word.substr(0, equals);
      std::replace(order.begin(), order.end(), '_', ' ');
      line.caught[order] = word.substr(equals + 1);
    }
    if (word == "unseen") std::getline(words >> std::ws, line.reason);
  }
  return lines;
}

inline std::string text_of(const BarrierLine& line) {
  std::string text = fmt::format("{} {} {}", line.row, line.number, line.kind);
  for (const auto& [order, name] : line.caught) {
    std::string word = order;
    std::replace(word.begin(), word.end(), ' ', '_');
    text += fmt::format(" {}={}", word, name);
  }
  if (line.caught.empty()) text += " unseen " + line.reason;
  return text;
}

/// "1 f, 2 f r": each barrier with the first letters of the orders that catch it.
inline std::string summary_of(const std::vector<const BarrierLine*>& lines) {
  std::string text;
  for (const BarrierLine* line : lines) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", line->number);
    if (line->caught.empty()) text += " -";
    // The letters come in this order, whatever the order of the names is.
    for (const char letter : {'f', 'r', 's'}) {
      const bool random = letter == 's';
      const bool caught = std::any_of(line->caught.begin(), line->caught.end(), [&](const auto& c) {
        return random ? c.first.starts_with("random")
                      : c.first == (letter == 'f' ? "forward" : "reverse");
      });
      if (caught) text += fmt::format(" {}", letter);
    }
  }
  return text;
}

/// The text of docs/reference/barriers.md. Rows of one source with one verdict share a line.
inline std::string barrier_page(const std::vector<BarrierLine>& lines) {
  std::map<std::string, std::vector<const BarrierLine*>> by_row;
  for (const BarrierLine& line : lines) by_row[line.row].push_back(&line);
  struct Group {
    std::string source, summary;
    std::vector<std::string> rows;
    size_t barriers;
  };
  std::vector<Group> groups;
  size_t caught = 0;
  std::map<std::string, size_t> by_order, alone;  // an order that alone catches a barrier
  for (const BarrierLine& line : lines) {
    caught += !line.caught.empty();
    for (const auto& [order, name] : line.caught) ++by_order[order];
    if (line.caught.size() == 1) ++alone[line.caught.begin()->first];
  }
  for (const Kernel& row : kernels()) {
    const auto found = by_row.find(row.id);
    if (found == by_row.end()) continue;
    const std::string summary = summary_of(found->second);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.source == row.source && g.summary == summary;
    });
    if (group == groups.end())
      group = groups.insert(group, {row.source, summary, {}, found->second.size()});
    group->rows.push_back(row.id);
  }
  std::string text =
      "# Which missing barriers are caught\n\n"
      "Generated by `MULCIBER_BARRIERS=write build/tests/conformance_tests`. Each barrier of each "
      "kernel row was taken out of the row's\n"
      "SPIR-V, and the row's cases ran with workgroups and subgroups numbered forward (f, as the "
      "driver has them), in reverse (r)\n"
      "and shuffled (s); where no case showed it, also with one workgroup to a dispatch, which "
      "takes rows or heads in turn.\n"
      "A letter says that some case then gave other bits; - that none did in any "
      "order. Barriers are numbered as\n"
      "they come in the module: those of `main()` first, then those of functions in the order of "
      "the source, each once however often\n"
      "it is called; a memory barrier right before another barrier is "
      "one with it. Shared memory begins as zeros, so that nothing which an earlier workgroup left "
      "there hides a race.\n"
      "`tests/mutants/barriers.txt` has the cases; `barriers_test` runs them, and "
      "fails where the lack of a barrier is\n"
      "caught no longer or a barrier has no line.\n\n";
  text += fmt::format("The lack of {} of {} barriers is caught:", caught, lines.size());
  const char* between = " ";
  for (const auto& [order, count] : by_order) {
    text += fmt::format("{}{} in {} order ({} in no other)", between, count, order, alone[order]);
    between = ", ";
  }
  text += ".\n\n| source | rows | barriers | caught in |\n| --- | --- | --- | --- |\n";
  for (const Group& group : groups) {
    std::string rows;
    for (const std::string& row : group.rows)
      rows += fmt::format("{}`{}`", rows.empty() ? "" : ", ", row);
    text +=
        fmt::format("| {} | {} | {} | {} |\n", group.source, rows, group.barriers, group.summary);
  }
  text += "\n## Not caught in any order\n\n| rows | barrier | why |\n| --- | --- | --- |\n";
  std::vector<std::pair<std::pair<size_t, std::string>, std::vector<std::string>>> unseen;
  for (const Kernel& row : kernels()) {
    for (const BarrierLine* line : by_row[row.id]) {
      if (!line->caught.empty()) continue;
      const std::pair<size_t, std::string> what{line->number, line->reason};
      auto found = std::find_if(unseen.begin(), unseen.end(), [&](const auto& u) {
        return u.first == what && find_kernel(u.second[0])->source == std::string(row.source);
      });
      if (found == unseen.end()) found = unseen.insert(found, {what, {}});
      found->second.push_back(row.id);
    }
  }
  for (const auto& [what, ids] : unseen) {
    std::string rows;
    for (const std::string& id : ids) rows += fmt::format("{}`{}`", rows.empty() ? "" : ", ", id);
    text += fmt::format("| {} | {} | {} |\n", rows, what.first, what.second);
  }
  return text;
}

}  // namespace mulciber::tests
