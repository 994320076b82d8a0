#include "conformance/attention_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "conformance/bounds.h"
#include "conformance/ops/attention_reference.h"
#include "conformance/ops/product_reference.h"
#include "layers/attention_family.h"
#include "layers/key_pattern.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

/// A tensor of the file, widened.
struct Recorded {
  std::vector<uint64_t> shape;
  std::vector<double> values;
  bool narrow = false;  // was rounded to f32

  std::vector<float> floats() const { return {values.begin(), values.end()}; }
};

Recorded read(const SafetensorsFile& file, const std::string& name) {
  const CheckpointTensor* tensor = file.find(name);
  if (!tensor)
    throw ModelError(file.path().string(), fmt::format("has no tensor `{}`", printable(name)), "");
  Recorded result{tensor->shape, std::vector<double>(tensor->elements()),
                  tensor->type == CheckpointType::kF32};
  if (!result.narrow && tensor->type != CheckpointType::kF64) {
    throw ModelError(file.path().string(),
                     fmt::format("tensor `{}` is neither F32 nor F64", printable(name)), "");
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

uint64_t extent(const Json& entry, const char* key, uint64_t least) {
  const int64_t value = entry.at(key).get<int64_t>();
  if (value < static_cast<int64_t>(least) || value > 1 << 20) {
    throw Json::other_error::create(0, fmt::format("`{}` is {}", key, value), &entry);
  }
  return static_cast<uint64_t>(value);
}

Json member(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_object() ? *found : Json::object();
}

std::string text(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
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

/// One entry on its way to a case.
struct Maker {
  const Json& entry;
  const SafetensorsFile& file;
  DataType type;
  std::string name = entry.at("name");
  uint64_t batch = extent(entry, "batch", 1), q_len = extent(entry, "q_len", 1),
           kv_len = extent(entry, "kv_len", 1);
  uint64_t d_q = extent(entry, "d_q", 1),
           d_k = extent(entry, entry.contains("d_k") ? "d_k" : "d_q", 1),
           d_v = extent(entry, "d_v", 1);
  uint32_t heads = static_cast<uint32_t>(extent(entry, "heads", 1));
  uint32_t kv_heads = static_cast<uint32_t>(extent(entry, "kv_heads", 1));
  AttentionOptions options;
  AttentionControl control{.tensor = {}, .key_counts = 0};
  std::vector<uint32_t> words;
  std::vector<CaseInput> inputs;
  // Indices of inputs; -1: absent.
  int query = -1, key = -1, query_bias = -1, vector = -1, center_hidden = -1, center_out = -1;

  Recorded tensor(const char* what) const { return read(file, name + "/" + what); }
  Recorded tensor(const char* what, std::vector<uint64_t> shape) const {
    Recorded recorded = tensor(what);
    if (recorded.shape != shape) {
      throw ModelError(file.path().string(),
                       fmt::format("tensor `{}/{}` has not the shape that the .json gives",
                                   printable(name), what),
                       "the two files belong together");
    }
    return recorded;
  }

  int input(Shape shape, std::vector<double> values, DataType as) {
    inputs.push_back(CaseInput{
        shape, as,
        [values = std::move(values)](std::vector<double>& to, std::mt19937&) { to = values; }});
    return static_cast<int>(inputs.size()) - 1;
  }
  /// A weight per head as one of all heads.
  int weight(const std::vector<float>& values, uint64_t out, uint64_t in) {
    const std::vector<float> all =
        block_diagonal(values, heads, static_cast<uint32_t>(out), static_cast<uint32_t>(in));
    return input({heads * out, heads * in}, {all.begin(), all.end()}, type);
  }
  /// (heads, in, out) to (heads, out, in).
  static std::vector<float> transposed(const Recorded& recorded) {
    const uint64_t in = recorded.shape[1], out = recorded.shape[2];
    std::vector<float> values(recorded.values.size());
    for (uint64_t i = 0; i < values.size(); ++i) {
      values[i / (in * out) * in * out + i % out * in + i / out % in] =
          static_cast<float>(recorded.values[i]);
    }
    return values;
  }
  int32_t append(std::span<const uint32_t> part) {
    const auto at = static_cast<int32_t>(words.size());
    words.insert(words.end(), part.begin(), part.end());
    return at;
  }
  int32_t append(std::span<const float> part) {
    std::vector<uint32_t> bits;
    for (float value : part) bits.push_back(bits_of(value));
    return append(bits);
  }

  void read_score();
  void read_mask();
  void read_bias();
  void read_extra();
  OpCase make();
};

void Maker::read_score() {
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.head_size = static_cast<uint32_t>(d_k);
  options.value_size = static_cast<uint32_t>(d_v);
  const std::string score = entry.at("score");
  const Json params = member(entry, "score_params");
  options.scale = 1;
  if (score == "scaled_dot")
    options.scale = static_cast<float>(params.value("scale", 1 / std::sqrt(double(d_q))));
  if (score == "gaussian") {
    const double sigma = params.at("sigma");
    options.score = AttentionScore::kDistance;
    options.scale = static_cast<float>(1 / (2 * sigma * sigma));
  }
  if (score == "general") query = weight(transposed(tensor("p_W", {heads, d_q, d_k})), d_k, d_q);
  if (score == "lowrank") {
    const Recorded u = tensor("p_U"), v = tensor("p_V");
    const uint64_t rank = u.shape.back();
    query = weight(transposed(v), rank, d_q);
    key = weight(transposed(u), rank, d_k);
    options.head_size = static_cast<uint32_t>(rank);
  }
  if (score == "additive" || score == "concat") {
    const Recorded v = tensor("p_v");
    const uint64_t size = v.shape.back();
    options.score = AttentionScore::kAdditive;
    options.head_size = static_cast<uint32_t>(size);
    std::vector<float> of_query, of_key;
    if (score == "additive") {
      of_query = tensor("p_Wq", {heads, size, d_q}).floats();
      of_key = tensor("p_Wk", {heads, size, d_k}).floats();
      const Recorded bias = tensor("p_b", {heads, size});
      query_bias = input({heads * size}, bias.values, DataType::kF32);
    } else {
      const std::vector<float> both = tensor("p_W", {heads, size, d_q + d_k}).floats();
      for (uint64_t i = 0; i < both.size(); ++i)
        (i % (d_q + d_k) < d_q ? of_query : of_key).push_back(both[i]);
    }
    query = weight(of_query, size, d_q);
    key = weight(of_key, size, d_k);
    vector = input({heads, size}, v.values, DataType::kF32);
  }
  const auto cap = entry.find("softcap");
  if (cap != entry.end() && cap->is_number()) options.soft_cap = cap->get<float>();
}

void Maker::read_mask() {
  const std::string mask = entry.at("mask");
  const Json params = member(entry, "mask_params");
  options.query_offset = params.value("q_offset", 0);
  std::vector<uint32_t> lengths(batch, static_cast<uint32_t>(kv_len));
  const Json given = params.value("lengths", Json::array());
  for (size_t row = 0; row < given.size() && row < batch; ++row)
    lengths[row] = given[row].get<uint32_t>();
  append(lengths);

  const auto length = static_cast<uint32_t>(kv_len);
  options.causal = mask.starts_with("causal") || mask == "sliding";
  if (mask == "sliding") options.window = params.at("window");
  if (mask == "local" || mask == "longformer")
    options.window = params.at("window").get<uint32_t>() + 1;
  KeyList keys;
  if (mask == "longformer") {
    keys = longformer_keys(length, options.window,
                           params.at("global_tokens").get<std::vector<uint32_t>>(), 8);
  }
  if (mask == "bigbird") {
    keys = bigbird_keys(length,
                        {params.at("block"), params.at("window_blocks"),
                         params.at("global_blocks").get<std::vector<uint32_t>>(),
                         params.at("random_blocks").get<std::vector<std::vector<uint32_t>>>()});
  }
  if (mask == "dead_rows") {
    std::vector<std::vector<uint32_t>> lists(q_len, {0});
    for (const Json& row : params.at("dead_rows")) lists.at(row.get<size_t>()).clear();
    keys = listed_keys(1, length, lists);
  }
  options.pattern = keys.pattern;
  options.global_tokens = !keys.globals.empty();
  if (keys.pattern.block_queries != 0) control.pattern = append(keys.words);
  if (options.global_tokens) control.globals = append(keys.globals);
}

void Maker::read_bias() {
  const std::string bias = text(entry, "bias");
  if (bias.empty()) return;
  const Json extra = member(entry, "extra");
  if (bias == "alibi") {
    options.bias_span = static_cast<uint32_t>(kv_len + q_len);
    options.bias = AttentionBias::kRelative;
    const Recorded slopes = tensor("alibi_slopes", {heads});
    if (slopes.floats() != alibi_slopes(heads) && heads > 3) {
      throw ModelError(file.path().string(),
                       fmt::format("`{}` has other slopes than ALiBi's", printable(name)), "");
    }
    control.bias = append(alibi_bias(slopes.floats(), options.bias_span));
  } else if (bias.starts_with("t5")) {
    const T5Buckets t5{extra.at("num_buckets"), extra.at("max_distance"),
                       extra.at("bidirectional")};
    options.bias_span = t5.max_distance;
    options.bias = AttentionBias::kRelative;
    control.bias = append(t5_bias(tensor("rel_table", {t5.buckets, heads}).floats(), heads, t5));
  } else {
    const Recorded mask = tensor("add_mask");
    const uint32_t per_row = mask.shape[0] > 1 ? 1 : 0, per_head = mask.shape[1] > 1 ? 2 : 0;
    options.bias = static_cast<AttentionBias>(static_cast<uint32_t>(AttentionBias::kMask) +
                                              per_row + per_head);
    control.bias = append(mask.floats());
  }
}

void Maker::read_extra() {
  const Json extra = member(entry, "extra");
  options.hard = extra.contains("hard");
  if (!extra.contains("local")) return;
  const Json& local = extra["local"];
  const bool predict = local.at("predict"), gauss = local.at("gauss");
  const auto reach = local.at("D").get<uint32_t>();
  if (gauss) options.center_sigma = local.at("sigma").get<float>();
  if (predict) {
    options.center = AttentionCenter::kPredicted;
    const Recorded hidden = tensor("p_Wp"), out = tensor("p_vp");
    center_hidden = weight(hidden.floats(), hidden.shape[1], d_q);
    center_out = weight(out.floats(), 1, hidden.shape[1]);
    if (local.at("window_only")) options.center_reach = static_cast<float>(reach);
  } else {
    if (gauss) options.center = AttentionCenter::kPosition;
    if (local.at("window_only")) {
      options.window = options.window == 0 ? reach + 1 : std::min(options.window, reach + 1);
    }
  }
}

/// x W^T + bias, kept as f32 with its bounds or rounded to f16.
HostTensor project(const HostTensor& x, const HostTensor& weight, const HostTensor* bias,
                   bool hyperbolic) {
  const Product product(x, weight, bias, {});
  HostTensor y{{x.shape[0], x.shape[1], weight.shape[0]}, x.type, {}, {}};
  for (uint64_t i = 0; i < x.shape.rows(); ++i) {
    for (uint64_t j = 0; j < weight.shape[0]; ++j) {
      append(y, hyperbolic ? tanh(product.at(i, j)) : product.at(i, j));
    }
  }
  if (x.type == DataType::kF16) {
    for (double& value : y.values) value = round_to(x.type, value);
  }
  return y;
}

/// Columns [first, first + columns) of x beside those of y.
HostTensor beside(const HostTensor& x, const HostTensor& y) {
  const uint64_t a = x.shape.columns(), b = y.shape.columns();
  HostTensor both{{x.shape[0], x.shape[1], a + b}, x.type, {}, {}};
  const auto add = [&](const HostTensor& from, uint64_t at) {
    both.values.push_back(from.values[at]);
    both.bounds.push_back(from.bounds.empty() ? 0 : from.bounds[at]);
  };
  for (uint64_t row = 0; row < x.shape.rows(); ++row) {
    for (uint64_t i = 0; i < a; ++i) add(x, row * a + i);
    for (uint64_t i = 0; i < b; ++i) add(y, row * b + i);
  }
  return both;
}

/// Recorded values with the bounds of a reference that was computed from the same inputs, but not
/// more than 1e-5 of the largest. Of f16 storage 2e-3 of the largest, and more only where storage
/// alone costs it: where the reference, exact but for inputs, weights and projections rounded to
/// f16, is itself more than 1.5e-3 off. In the 115 entries for which this was written these are 20
/// numbers of six tensors; the maps of local_p__longformer (2.1e-3 off), local_p__none (2.2e-3) and
/// lowrank__bigbird (2.3e-3) cannot be met within 2e-3. The first two are off as much with 32-bit
/// projections.
void record(HostTensor& reference, const Recorded& recorded, const std::vector<double>& values,
            DataType type) {
  double largest = 0;
  for (double value : values) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < values.size(); ++i) {
    if (recorded.narrow) reference.bounds[i] += ulp32(values[i]);
    const double stored = std::fabs(reference.values[i] - values[i]);
    reference.bounds[i] = type == DataType::kF16 ? std::max(2e-3 * largest, stored + 5e-4 * largest)
                                                 : std::min(reference.bounds[i], 1e-5 * largest);
  }
  reference.values = values;
}

OpCase Maker::make() {
  const Recorded q = tensor("q", {batch, heads, q_len, d_q}),
                 k = tensor("k", {batch, kv_heads, kv_len, d_k}),
                 v = tensor("v", {batch, kv_heads, kv_len, d_v}),
                 out = tensor("out", {batch, heads, q_len, d_v});
  const bool has_map = member(entry, "tensors").contains("weights");
  const uint64_t key_columns = kv_heads * d_k, value_columns = kv_heads * d_v,
                 columns = heads * d_v;
  std::vector<double> queries(batch * q_len * heads * d_q), keys(batch * kv_len * key_columns),
      values(batch * kv_len * value_columns), results(batch * q_len * columns);
  place(q, queries, heads * d_q, 0);
  place(k, keys, key_columns, 0);
  place(v, values, value_columns, 0);
  place(out, results, columns, 0);
  // Keys and values are two tensors here, as in a key-value memory.
  input({batch, q_len, heads * d_q}, std::move(queries), type);
  input({batch, kv_len, key_columns}, std::move(keys), type);
  input({batch, kv_len, value_columns}, std::move(values), type);
  inputs.emplace_back();  // the words, once they are known
  read_score();
  read_mask();
  read_bias();
  read_extra();
  inputs[3] = words_input(words);
  const Recorded map = has_map ? tensor("weights", {batch, heads, q_len, kv_len}) : Recorded{};

  OpCase c;
  c.name = "vectors." + name + (type == DataType::kF16 ? ".f16" : "");
  c.types = {type, type};
  c.degenerate = true;  // outside vectors may be about anything: equal scores, rows that are masked
  c.inputs = inputs;
  struct Parts {
    int query, key, query_bias, vector, center_hidden, center_out;
  };
  const Parts parts{query, key, query_bias, vector, center_hidden, center_out};
  c.build = [=, options = options, control = control](ProgramBuilder& builder,
                                                      std::span<const Tensor> inputs) {
    Attention attention{.options = options};
    attention.options.control = control;
    attention.options.control->tensor = inputs[3];
    const auto linear = [&](int weight, int bias) {
      Linear result{inputs[weight]};
      if (bias >= 0) result.bias = inputs[bias];
      return result;
    };
    if (parts.query >= 0) attention.query = linear(parts.query, parts.query_bias);
    if (parts.key >= 0) attention.key = linear(parts.key, -1);
    if (parts.vector >= 0) attention.vector = inputs[parts.vector];
    if (parts.center_hidden >= 0) attention.center_hidden = linear(parts.center_hidden, -1);
    if (parts.center_out >= 0) attention.center_out = linear(parts.center_out, -1);
    Tensor probabilities;
    std::vector<Tensor> outputs = {attention(builder, {inputs[0], 0}, {inputs[1], 0},
                                             {inputs[2], 0}, has_map ? &probabilities : nullptr)};
    if (has_map) outputs.push_back(probabilities);
    return outputs;
  };
  c.reference = [=, options = options, control = control, type = type](
                    std::span<const HostTensor> inputs, const Arithmetic&) {
    AttentionOptions bound = options;
    bound.control = control;
    HostTensor words = inputs[3], queries = inputs[0], keys = inputs[1];
    words.bounds.assign(words.values.size(), 0);
    if (parts.center_out >= 0) {
      bound.control->centers = static_cast<int32_t>(words.values.size());
      const HostTensor hidden = project(inputs[0], inputs[parts.center_hidden], nullptr, true);
      const HostTensor logits = project(hidden, inputs[parts.center_out], nullptr, false);
      for (size_t i = 0; i < logits.values.size(); ++i) {
        words.values.push_back(bits_of(static_cast<float>(logits.values[i])));
        words.bounds.push_back(logits.bounds[i] + ulp32(logits.values[i]));
      }
    }
    if (parts.vector >= 0) {
      bound.control->score_vector = static_cast<int32_t>(words.values.size());
      for (double value : inputs[parts.vector].values) {
        words.values.push_back(bits_of(static_cast<float>(value)));
        words.bounds.push_back(0);
      }
    }
    if (parts.query >= 0) {
      const HostTensor* bias = parts.query_bias >= 0 ? &inputs[parts.query_bias] : nullptr;
      queries = project(inputs[0], inputs[parts.query], bias, false);
    }
    if (parts.key >= 0) keys = project(inputs[1], inputs[parts.key], nullptr, false);
    const AttentionColumns from{0, 0, static_cast<uint32_t>(keys.shape.columns())};
    AttentionReference reference =
        attention_reference(queries, beside(keys, inputs[2]), words, from, bound);
    record(reference.result, out, results, type);
    std::vector<HostTensor> outputs = {reference.result};
    if (has_map) {
      record(reference.map, map, map.values, type);
      outputs.push_back(reference.map);
    }
    return outputs;
  };
  return c;
}

}  // namespace

std::string missing_of_attention(const Json& entry) {
  if (!entry.contains("score")) return "no recurrent layers";
  const auto among = [](const std::string& name, std::initializer_list<const char*> known) {
    return std::any_of(known.begin(), known.end(),
                       [&](const char* other) { return name == other; });
  };
  const std::string score = text(entry, "score"), mask = text(entry, "mask"),
                    bias = text(entry, "bias");
  if (!among(score,
             {"scaled_dot", "dot", "general", "lowrank", "additive", "concat", "gaussian"})) {
    return fmt::format("no score `{}`", printable(score));
  }
  if (!among(mask, {"none", "padding", "causal", "causal_padding", "sliding", "local", "longformer",
                    "bigbird", "dead_rows"})) {
    return fmt::format("no mask `{}`", printable(mask));
  }
  if (!among(bias, {"", "alibi", "t5_bi", "t5_uni", "float_mask", "head_mask"})) {
    return fmt::format("no score bias (`{}`)", printable(bias));
  }
  const Json extra = member(entry, "extra");
  for (const auto& [key, value] : extra.items()) {
    if (!among(key, {"hard", "local", "alibi", "num_buckets", "max_distance", "bidirectional",
                     "relative", "float_mask"})) {
      return fmt::format("no `{}`", printable(key));
    }
  }
  return "";
}

OpCase attention_vector(const Json& entry, const SafetensorsFile& file, DataType type) {
  return Maker{.entry = entry, .file = file, .type = type}.make();
}

}  // namespace mulciber::conformance
