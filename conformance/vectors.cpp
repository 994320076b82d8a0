#include "conformance/vectors.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstring>
#include <memory>

#include "conformance/bounds.h"
#include "conformance/ops/attention_reference.h"
#include "models/json.h"
#include "models/safetensors.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

using Path = std::filesystem::path;

/// A tensor of the file, widened.
struct Recorded {
  std::vector<uint64_t> shape;
  std::vector<double> values;
  bool narrow = false;  // was rounded to f32
};

Recorded read(const SafetensorsFile& file, const std::string& name) {
  const CheckpointTensor* tensor = file.find(name);
  if (!tensor) throw ModelError(file.path().string(), fmt::format("has no tensor `{}`", printable(name)), "");
  Recorded result{tensor->shape, std::vector<double>(tensor->elements()), tensor->type == CheckpointType::kF32};
  if (!result.narrow && tensor->type != CheckpointType::kF64) {
    throw ModelError(file.path().string(), fmt::format("tensor `{}` is neither F32 nor F64", printable(name)), "");
  }
  for (size_t i = 0; i < result.values.size(); ++i) {
    if (result.narrow) {
      float value;
      std::memcpy(&value, tensor->bytes.data() + 4 * i, 4);
      result.values[i] = value;
    } else {
      std::memcpy(&result.values[i], tensor->bytes.data() + 8 * i, 8);
    }
  }
  return result;
}

/// The numbers of one entry of attention.json.
struct Entry {
  std::string name;
  uint64_t batch, q_len, kv_len;
  AttentionOptions options;
  std::vector<uint32_t> lengths;  // per row of the batch
  bool has_map = false;
};

/// What the op lacks to serve an entry, or "".
std::string missing(const Json& entry) {
  const auto text = [&](const char* key) {
    const auto found = entry.find(key);
    return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto given = [&](const char* key) {
    const auto found = entry.find(key);
    return found != entry.end() && !found->is_null() && !(found->is_structured() && found->empty());
  };
  if (!entry.contains("score")) return "no recurrent layers";
  const std::string score = text("score"), mask = text("mask");
  if (score != "scaled_dot" && score != "dot") return fmt::format("no score `{}`", printable(score));
  if (given("softcap")) return "no soft cap on scores";
  if (given("bias")) return fmt::format("no score bias (`{}`)", printable(text("bias")));
  if (given("extra")) {
    const Json& extra = entry["extra"];
    return fmt::format("no `{}`", printable(extra.is_object() ? extra.begin().key() : extra.dump()));
  }
  if (mask == "none" || mask == "padding") return "";
  if (mask != "causal" && mask != "causal_padding") return fmt::format("no mask `{}`", printable(mask));
  // Queries are the last positions of the keys that are there, so right-padded keys would move them.
  const Json params = entry.value("mask_params", Json::object());
  const int64_t kv_len = entry.at("kv_len"), aligned = kv_len - entry.at("q_len").get<int64_t>();
  bool as_last = params.value("q_offset", int64_t{0}) == aligned;
  for (const Json& length : params.value("lengths", Json::array())) as_last &= length.get<int64_t>() == kv_len;
  return as_last ? "" : "no causal mask with queries elsewhere than at the end of the keys";
}

uint64_t extent(const Json& entry, const char* key, uint64_t least) {
  const int64_t value = entry.at(key).get<int64_t>();
  if (value < static_cast<int64_t>(least) || value > 1 << 20) {
    throw Json::other_error::create(0, fmt::format("`{}` is {}", key, value), &entry);
  }
  return static_cast<uint64_t>(value);
}

Entry read_entry(const Json& entry, std::string name) {
  Entry e;
  e.name = std::move(name);
  e.batch = extent(entry, "batch", 1);
  e.q_len = extent(entry, "q_len", 1);
  e.kv_len = extent(entry, "kv_len", 1);
  e.options.heads = static_cast<uint32_t>(extent(entry, "heads", 1));
  e.options.kv_heads = static_cast<uint32_t>(extent(entry, "kv_heads", 1));
  e.options.head_size = static_cast<uint32_t>(extent(entry, "d_q", 1));
  e.options.value_size = static_cast<uint32_t>(extent(entry, "d_v", 1));
  const double usual = entry.at("score") == "dot" ? 1 : 1 / std::sqrt(double(e.options.head_size));
  const Json score = entry.value("score_params", Json::object()), mask = entry.value("mask_params", Json::object());
  e.options.scale = static_cast<float>(score.is_object() ? score.value("scale", usual) : usual);
  e.options.causal = entry.at("mask").get<std::string>().starts_with("causal");
  e.lengths.assign(e.batch, static_cast<uint32_t>(e.kv_len));
  const Json lengths = mask.value("lengths", Json::array());
  for (size_t row = 0; row < lengths.size() && row < e.batch; ++row) e.lengths[row] = lengths[row].get<uint32_t>();
  e.has_map = entry.value("tensors", Json::object()).contains("weights");
  return e;
}

/// (batch, heads, length, size) into columns from `first` of (batch, length, columns).
void place(const Recorded& from, std::vector<double>& to, uint64_t columns, uint64_t first) {
  const uint64_t heads = from.shape[1], length = from.shape[2], size = from.shape[3];
  for (uint64_t i = 0; i < from.values.size(); ++i) {
    const uint64_t d = i % size, position = i / size % length, head = i / size / length % heads,
                   row = i / size / length / heads;
    to[(row * length + position) * columns + first + head * size + d] = from.values[i];
  }
}

/// Recorded values with the bounds of a reference that was computed from the same inputs.
void record(HostTensor& reference, const std::vector<double>& values, bool narrow) {
  reference.values = values;
  for (size_t i = 0; i < values.size() && narrow; ++i) reference.bounds[i] += ulp32(values[i]);
}

OpCase attention_case(const Entry& e, const SafetensorsFile& file) {
  const auto expect = [&](const char* tensor, std::vector<uint64_t> shape) {
    Recorded recorded = read(file, e.name + "/" + tensor);
    if (recorded.shape != shape) {
      throw ModelError(file.path().string(),
                       fmt::format("tensor `{}/{}` has not the shape that the .json gives", printable(e.name), tensor),
                       "the two files belong together");
    }
    return recorded;
  };
  const uint64_t heads = e.options.heads, kv_heads = e.options.kv_heads;
  const Recorded q = expect("q", {e.batch, heads, e.q_len, e.options.head_size});
  const Recorded k = expect("k", {e.batch, kv_heads, e.kv_len, e.options.head_size});
  const Recorded v = expect("v", {e.batch, kv_heads, e.kv_len, e.options.value_size});
  const Recorded out = expect("out", {e.batch, heads, e.q_len, e.options.value_size});
  Recorded map;
  if (e.has_map) map = expect("weights", {e.batch, heads, e.q_len, e.kv_len});

  const uint64_t q_columns = heads * e.options.head_size, v_first = kv_heads * e.options.head_size;
  const uint64_t kv_columns = v_first + kv_heads * e.options.value_size, columns = heads * e.options.value_size;
  std::vector<double> queries(e.batch * e.q_len * q_columns), keys(e.batch * e.kv_len * kv_columns),
      results(e.batch * e.q_len * columns);
  place(q, queries, q_columns, 0);
  place(k, keys, kv_columns, 0);
  place(v, keys, kv_columns, v_first);
  place(out, results, columns, 0);

  OpCase c;
  c.name = "vectors." + e.name;
  c.degenerate = true;  // outside vectors may be about anything: equal scores, rows that are masked
  const auto recorded_input = [](Shape shape, std::vector<double> values) {
    return CaseInput{shape, DataType::kF32,
                     [values = std::move(values)](std::vector<double>& to, std::mt19937&) { to = values; }};
  };
  c.inputs = {recorded_input({e.batch, e.q_len, q_columns}, std::move(queries)),
              recorded_input({e.batch, e.kv_len, kv_columns}, std::move(keys)), words_input(e.lengths)};
  c.build = [=, has_map = e.has_map](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    AttentionOptions options = e.options;
    options.control = AttentionControl{.tensor = inputs[2], .key_counts = 0};
    const HeadColumns queries{inputs[0], 0}, keys{inputs[1], 0}, values{inputs[1], static_cast<uint32_t>(v_first)};
    std::vector<Tensor> outputs = {attention(builder, queries, keys, values, options)};
    if (has_map) outputs.push_back(attention_map(builder, queries, keys, options));
    return outputs;
  };
  c.reference = [=](std::span<const HostTensor> inputs, const Arithmetic&) {
    AttentionOptions options = e.options;
    options.control = AttentionControl{.key_counts = 0};
    const AttentionColumns from{0, 0, static_cast<uint32_t>(v_first)};
    AttentionReference reference = attention_reference(inputs[0], inputs[1], inputs[2], from, options);
    record(reference.result, results, out.narrow);
    std::vector<HostTensor> outputs = {reference.result};
    if (!map.values.empty()) {
      record(reference.map, map.values, map.narrow);
      outputs.push_back(reference.map);
    }
    return outputs;
  };
  return c;
}

std::string case_name(std::string name) {
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    letter = std::isalnum(byte) || letter == '.' || letter == '_' ? static_cast<char>(std::tolower(byte)) : '_';
  }
  return "mulciber.vectors." + name;
}

}  // namespace

std::vector<SuiteCase> load_vectors(const Path& path) {
  const Json document = read_json(path);
  if (!document.is_object() || !document.contains("cases") || !document["cases"].is_array()) {
    throw ModelError(path.string(), "has no list `cases`", "see docs/conformance-vectors.md for the format");
  }
  Path tensors = path;
  std::unique_ptr<const SafetensorsFile> file;
  std::vector<SuiteCase> cases;
  for (const Json& entry : document["cases"]) {
    const std::string where = fmt::format("case {}", cases.size());
    try {
      SuiteCase c;
      const std::string name = entry.at("name");
      c.name = case_name(name);
      c.op = "vectors";
      c.types = "f32";
      c.must_pass = true;
      if (const std::string lacking = missing(entry); !lacking.empty()) {
        c.run = [lacking](Device&, const RunOptions&) { return CaseResult{Status::kNotSupported, lacking}; };
      } else {
        if (!file) file = std::make_unique<SafetensorsFile>(tensors.replace_extension(".safetensors"));
        c.op_case = std::make_shared<OpCase>(attention_case(read_entry(entry, name), *file));
        c.run = [op_case = c.op_case](Device& device, const RunOptions& options) {
          return run_case(device, *op_case, nullptr, options);
        };
      }
      cases.push_back(std::move(c));
    } catch (const Json::exception& error) {
      throw ModelError(path.string(), fmt::format("{}: {}", where, error.what()),
                       "see docs/conformance-vectors.md for the format");
    }
  }
  return cases;
}

}  // namespace mulciber::conformance
