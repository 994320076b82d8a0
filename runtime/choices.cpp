#include "runtime/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "runtime/deny_list.h"
#include "runtime/op.h"

namespace mulciber {
namespace {

constexpr uint64_t kExactExtent = 8;  // row counts up to this have kernels of their own

uint64_t rounded(uint64_t extent) {
  return extent <= kExactExtent ? extent : std::bit_ceil(extent);
}

}  // namespace

std::string choice_key(const Problem& problem) {
  const MeasuredOp* op = measured(problem.op);
  if (problem.extents.empty() || op == nullptr) return "";
  std::vector<uint64_t> extents = problem.extents;
  for (size_t i = 0; i < std::min(op->changing, extents.size()); ++i)
    extents[i] = rounded(extents[i]);
  return fmt::format("{} {} {} {}", name_of(problem.op), name_of(problem.types.activation),
                     name_of(problem.types.weight), fmt::join(extents, ","));
}

void AskedProblems::note(const Problem& problem) {
  const std::string key = choice_key(problem);
  if (key.empty()) return;
  Asked& asked = problems[key];
  if (asked.times++ == 0) asked.problem = problem;
}

Choices::Choices(const Capabilities& device, const std::string& folder)
    : file_(device, folder, "choices") {
  read();
}

void Choices::read() {
  all_.clear();
  const nlohmann::json choices = file_.read("choices");
  try {
    for (const auto& [key, value] : choices.items()) {
      Choice choice;
      choice.row = value.at("row").get<std::string>();
      choice.hash = std::stoull(value.at("hash").get<std::string>(), nullptr, 16);
      for (const auto& [row, time] : value.at("milliseconds").items())
        choice.milliseconds.emplace_back(row, time.get<double>());
      all_[key] = std::move(choice);
    }
  } catch (const std::exception&) {
    all_.clear();  // a damaged file: rows are measured again
  }
}

std::map<std::string, std::string> Choices::valid() const {
  std::map<std::string, std::string> rows;
  for (const auto& [key, choice] : all_) {
    const Kernel* row = find_kernel(choice.row);
    if (row && row_hash(*row) == choice.hash) rows[key] = choice.row;
  }
  return rows;
}

bool Choices::keep(const std::map<std::string, Choice>& more) {
  if (file().empty()) return false;
  read();  // another process may have written to the file
  for (const auto& [key, choice] : more) all_[key] = choice;
  nlohmann::json choices = nlohmann::json::object();
  for (const auto& [key, choice] : all_) {
    nlohmann::json milliseconds = nlohmann::json::object();
    for (const auto& [row, time] : choice.milliseconds) milliseconds[row] = time;
    choices[key] = {{"row", choice.row},
                    {"hash", fmt::format("{:016x}", choice.hash)},
                    {"milliseconds", milliseconds}};
  }
  return file_.write("choices", std::move(choices));
}

void Choices::forget() {
  all_.clear();
  std::error_code error;
  std::filesystem::remove(file_.path(), error);
}

}  // namespace mulciber
