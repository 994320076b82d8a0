// The table of pieces and their ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoints/json.h"

namespace mulciber {

/// A two-way table. Ids may have gaps, whose pieces are empty.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// An object of pieces and their ids, the form of vocab.json. Throws ModelError naming `where`:
  /// ids that are no integers, appear twice, or lie far beyond the number of pieces.
  static Vocabulary from_json(const Json& object, const std::string& where);
  /// The index is the id. Where pieces are equal, the last one is found by name.
  explicit Vocabulary(std::vector<std::string> pieces);
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  /// One more than the highest id.
  std::int32_t size() const { return static_cast<std::int32_t>(pieces_.size()); }
  bool has(std::int32_t id) const { return id >= 0 && id < size(); }
  /// id must be in range.
  const std::string& piece(std::int32_t id) const { return pieces_[static_cast<std::size_t>(id)]; }
  std::optional<std::int32_t> find(std::string_view piece) const;

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string_view, std::int32_t> ids_;  // views into pieces_
};

}  // namespace mulciber
