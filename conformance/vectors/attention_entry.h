// An entry of attention.json with its tensors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "conformance/vectors/recorded.h"
#include "layers/attention_family.h"

namespace mulciber::conformance {

/// The attention of an entry, with its weights by their indices among the inputs; -1: absent.
struct AttentionParts {
  AttentionOptions options;
  AttentionControl control;
  int query = -1, key = -1, query_bias = -1, vector = -1, center_hidden = -1, center_out = -1;
};

/// Converts an entry to a case: the attention it describes, and its tensors as inputs. Queries,
/// keys and values are the first three inputs, the words of control the fourth.
struct AttentionEntry {
  const Json& json;
  const SafetensorsFile& file;
  DataType type;
  std::string name = name_of(json);
  uint64_t batch = extent(json, "batch", 1), q_len = extent(json, "q_len", 1),
           kv_len = extent(json, "kv_len", 1);
  uint64_t d_q = extent(json, "d_q", 1), d_k = extent_or(json, "d_k", "d_q", 1),
           d_v = extent(json, "d_v", 1);
  uint32_t heads = static_cast<uint32_t>(extent(json, "heads", 1));
  uint32_t kv_heads = static_cast<uint32_t>(extent(json, "kv_heads", 1));
  AttentionParts parts;
  ControlWords words;
  std::vector<CaseInput> inputs;

  Recorded tensor(const std::string& what) const { return read_recorded(file, name + "/" + what); }
  Recorded tensor(const std::string& what, const std::vector<uint64_t>& shape) const {
    return read_recorded(file, name + "/" + what, shape);
  }
  int input(Shape shape, std::vector<double> values, DataType as) {
    inputs.push_back(recorded_input(shape, std::move(values), as));
    return static_cast<int>(inputs.size()) - 1;
  }
  /// Adds a weight per head, (heads, out, in), as one weight of all heads.
  int weight(const std::vector<float>& values, uint64_t out, uint64_t in);

  /// Reads the whole entry. Throws ModelError, Json::exception.
  void read();

 private:
  void read_score();
  void read_mask();
  void read_bias();
  void read_extra();
};

/// Converts (batch, heads, length, size) to (batch, length, heads * size).
std::vector<double> side_by_side(const Recorded& heads);

}  // namespace mulciber::conformance
