#include "runtime/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/replace_file.h"
#include "runtime/deny_list.h"
#include "runtime/op.h"
#include "runtime/pipeline.h"

namespace mulciber {
namespace {

constexpr int kFormat = 1;
constexpr uint64_t kExactExtent = 8;  // so few rows have kernels of their own

uint64_t rounded(uint64_t extent) {
  return extent <= kExactExtent ? extent : std::bit_ceil(extent);
}

}  // namespace

std::string choice_key(const Problem& problem) {
  if (problem.extents.empty()) return "";
  std::vector<uint64_t> extents = problem.extents;
  // The rest are those of weights and heads, which belong to the model.
  const size_t changing = problem.op == Op::kMatmul ? 1 : 3;
  for (size_t i = 0; i < std::min(changing, extents.size()); ++i) extents[i] = rounded(extents[i]);
  return fmt::format("{} {} {} {}", name_of(problem.op), name_of(problem.types.activation),
                     name_of(problem.types.weight), fmt::join(extents, ","));
}

void AskedProblems::note(const Problem& problem) {
  if (problem.extents.empty()) return;
  Asked& asked = problems[choice_key(problem)];
  if (asked.times++ == 0) asked.problem = problem;
}

Choices::Choices(const Capabilities& device, const std::string& folder)
    : identity_(driver_identity(device)) {
  if (const std::filesystem::path path = writable_cache_folder(folder); !path.empty()) {
    Fnv1a hash;
    hash.add(identity_);
    file_ = path / fmt::format("choices-{:016x}.json", hash.value());
  }
  read();
}

void Choices::read() {
  all_.clear();
  if (file_.empty()) return;
  constexpr uint64_t kLargest = 4u << 20;
  std::error_code error;
  if (const uint64_t size = std::filesystem::file_size(file_, error); error || size > kLargest)
    return;
  std::ifstream in(file_, std::ios::binary);
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  try {
    if (!json.is_object() || json.at("format") != kFormat || json.at("driver") != identity_) return;
    for (const auto& [key, value] : json.at("choices").items()) {
      Choice choice;
      choice.row = value.at("row").get<std::string>();
      choice.hash = std::stoull(value.at("hash").get<std::string>(), nullptr, 16);
      for (const auto& [row, time] : value.at("milliseconds").items())
        choice.milliseconds.emplace_back(row, time.get<double>());
      all_[key] = std::move(choice);
    }
  } catch (const std::exception&) {
    all_.clear();  // of another format, or damaged: measured again
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
  if (file_.empty()) return false;
  read();  // another process may have added to it
  for (const auto& [key, choice] : more) all_[key] = choice;
  nlohmann::json choices = nlohmann::json::object();
  for (const auto& [key, choice] : all_) {
    nlohmann::json milliseconds = nlohmann::json::object();
    for (const auto& [row, time] : choice.milliseconds) milliseconds[row] = time;
    choices[key] = {{"row", choice.row},
                    {"hash", fmt::format("{:016x}", choice.hash)},
                    {"milliseconds", milliseconds}};
  }
  const nlohmann::json json = {{"format", kFormat}, {"driver", identity_}, {"choices", choices}};
  return replace_file(file_,
                      json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

void Choices::forget() {
  all_.clear();
  std::error_code error;
  if (!file_.empty()) std::filesystem::remove(file_, error);
}

}  // namespace mulciber
