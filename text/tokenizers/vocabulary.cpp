#include "text/tokenizers/vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "mulciber/error.h"

namespace mulciber {
namespace {

// Larger gaps are a mistake in the file, and would cost memory that the file itself does not have.
constexpr std::size_t kLargestGap = 65536;

}  // namespace

Vocabulary Vocabulary::from_json(const Json& object, const std::string& where) {
  const auto fail = [&](const std::string& problem) {
    throw ModelError(where, problem, "the file is damaged or of another kind: download it again");
  };
  if (!object.is_object()) fail("has no object of pieces and their ids");
  const std::size_t bound = 2 * object.size() + kLargestGap;
  Vocabulary result;
  std::vector<bool> taken;
  for (const auto& [piece, number] : object.items()) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= bound)
      fail("gives piece '" + printable(piece) + "' the id " +
           (number.is_structured() ? number.type_name() : printable(number.dump())) + "; it has " +
           std::to_string(object.size()) + " pieces");
    const auto id = number.get<std::size_t>();
    if (id >= result.pieces_.size()) {
      result.pieces_.resize(id + 1);
      taken.resize(id + 1);
    }
    if (taken[id])
      fail("gives the id " + std::to_string(id) + " to '" + printable(piece) + "' and '" +
           printable(result.pieces_[id]) + "'");
    taken[id] = true;
    result.pieces_[id] = piece;
  }
  result.ids_.reserve(object.size());
  for (std::size_t id = 0; id < taken.size(); ++id)
    if (taken[id]) result.ids_.emplace(result.pieces_[id], static_cast<std::int32_t>(id));
  return result;
}

Vocabulary::Vocabulary(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
  ids_.reserve(pieces_.size());
  for (std::size_t id = 0; id < pieces_.size(); ++id)
    ids_[pieces_[id]] = static_cast<std::int32_t>(id);
}

std::optional<std::int32_t> Vocabulary::find(std::string_view piece) const {
  const auto it = ids_.find(piece);
  return it == ids_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace mulciber
