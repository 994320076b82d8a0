#include "conformance/vectors/recurrent_translation.h"

#include <nlohmann/json.hpp>

#include "layers/recurrent_decoder.h"
#include "ops/copy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/search.h"

namespace mulciber::conformance {
namespace {

/// The first `rows` rows of a state: its hidden vectors. state: (states, rows, H).
Tensor hidden_of(const Tensor& state) {
  return state.reshaped({state.shape[0] * state.shape[1], state.shape[2]})
      .row_slice(0, state.shape[1]);
}

/// Copies the result of one step to its columns of the results of all steps. to: (..., steps,
/// columns).
void keep_step(ProgramBuilder& builder, const Tensor& from, const Tensor& to, uint64_t step) {
  const uint64_t columns = to.shape.columns(), steps = to.shape[to.shape.rank() - 2];
  const uint64_t rows = to.shape.elements() / (steps * columns);
  copy_columns(builder, from.reshaped({rows, columns}), to.reshaped({rows, steps * columns}),
               {.into_column = static_cast<uint32_t>(step * columns)});
}

/// The arrays in control.
struct TranslationControl {
  ControlArray<uint32_t> lengths;        // (batch)
  ControlArray<float> factor;            // one
  ControlArray<uint32_t> source;         // (batch, source)
  ControlArray<uint32_t> forced, start;  // (steps, batch), (batch)
  TokenRules rules;
};

/// A bidirectional encoder and a decoder of one LSTM cell that attends to it.
struct Translation {
  uint64_t batch, source, units, embed, vocabulary, attention_size;
  bool input_feeding;  // Luong's; else Bahdanau's
  size_t control, source_table, target_table;
  TranslationControl at;
  BothDirections encoder;
  RecordedLinear initial;
  CellPart cell;
  RecordedLinear query, key;       // Luong: only key
  std::optional<size_t> vector;    // the vector of additive scores
  RecordedLinear combine, output;  // combine: only for Luong

  /// Results of a decoder after some steps.
  struct Steps {
    Tensor states, maps, logits, attentional, ids;
  };
  Tensor embedded(ProgramBuilder& builder, const Tensor& table, const Tensor& ids,
                  const ControlArray<uint32_t>& tokens, uint64_t length) const {
    return embedding(builder, table,
                     {.control = ids,
                      .tokens = tokens,
                      .rows = static_cast<uint32_t>(batch),
                      .length = static_cast<uint32_t>(length)});
  }
  AttentionMemory attention(Inputs inputs) const;
  /// Runs the decoder from its first state: fed with words of control or, where `forced` is false,
  /// with its own choices.
  Steps decode(ProgramBuilder& builder, Inputs inputs, const RecurrentLayer::Result& encoded,
               const RecurrentMemory& memory, uint64_t steps, bool forced) const;
  std::vector<Tensor> build(ProgramBuilder& builder, Inputs inputs, uint64_t forced_steps,
                            uint64_t greedy_steps) const;
};

AttentionMemory Translation::attention(Inputs inputs) const {
  AttentionMemory attention{.key_size = static_cast<uint32_t>(attention_size),
                            .value_size = static_cast<uint32_t>(2 * units),
                            .key = key.of(inputs)};
  if (vector) {
    attention.score = AttentionScore::kAdditive;
    attention.query = query.of(inputs);
    attention.vector = inputs[*vector];
  }
  return attention;
}

Translation::Steps Translation::decode(ProgramBuilder& builder, Inputs inputs,
                                       const RecurrentLayer::Result& encoded,
                                       const RecurrentMemory& memory, uint64_t steps,
                                       bool forced) const {
  const uint64_t context = 2 * units;
  Steps results{.states = builder.activation({2, batch, steps, units}),
                .maps = builder.activation({batch, steps, source}),
                .logits = builder.activation({batch, steps, vocabulary}),
                .attentional = builder.activation({batch, steps, units}),
                .ids = builder.activation({batch, steps, 1}, DataType::kU32)};
  const Tensor state = fill(builder, {2, batch, units}, 0);
  copy_columns(builder,
               initial.of(inputs)(builder, hidden_of(*encoded.backward_state), Activation::kTanh),
               hidden_of(state));
  const LuongDecoder luong = {
      input_feeding ? std::vector{cell.of(inputs)} : std::vector<RecurrentCell>{},
      attention(inputs), input_feeding ? combine.of(inputs) : Linear{}};
  // [y; feed]; the first feed is zeros.
  const Tensor feeding = fill(builder, {1, batch, embed + units}, 0);
  // [h; c; y], with the context c.
  const Tensor read = builder.activation({batch, 1, units + context + embed});
  const Tensor known = builder.activation({batch, 1, embed + context});
  const Tensor chosen = builder.activation({batch}, DataType::kU32);

  for (uint64_t step = 0; step < steps; ++step) {
    const Tensor ids = forced || step == 0 ? inputs[control] : chosen;
    const ControlArray<uint32_t> fed = forced      ? at.forced.part(step * batch, batch)
                                       : step == 0 ? at.start
                                                   : ControlArray<uint32_t>{0, at.start.count};
    const Tensor words = embedded(builder, inputs[target_table], ids, fed, 1);
    Tensor map, logits;
    if (input_feeding) {
      const Tensor attended = luong.step(builder, words.reshaped({batch, embed}), 0, memory,
                                         std::vector{feeding, state}, &map);
      keep_step(builder, attended, results.attentional, step);
      logits = output.of(inputs)(builder, attended);
    } else {
      const Tensor weighed =
          luong.attention(builder, {hidden_of(state).reshaped({batch, 1, units}), 0}, memory, &map);
      copy_columns(builder, words, known);
      copy_columns(builder, weighed, known, {.into_column = static_cast<uint32_t>(embed)});
      cell.of(inputs).step(builder, known, state, read);
      copy_columns(builder, weighed, read, {.into_column = static_cast<uint32_t>(units)});
      copy_columns(builder, words, read, {.into_column = static_cast<uint32_t>(units + context)});
      keep_step(builder, hidden_of(state), results.attentional, step);
      logits = output.of(inputs)(builder, read);
    }
    keep_step(builder, state, results.states, step);
    keep_step(builder, map, results.maps, step);
    keep_step(builder, logits, results.logits, step);
    // [bits of the log probability, id] of each row.
    const Tensor best =
        top_k(builder, logits.reshaped({batch, vocabulary}), 1, inputs[control], at.rules);
    const CopyOptions the_id = {.first_column = 1, .columns = 1};
    copy_columns(builder, best.reshaped({batch, 2}), chosen.reshaped({batch, 1}), the_id);
    keep_step(builder, chosen, results.ids, step);
  }
  return results;
}

std::vector<Tensor> Translation::build(ProgramBuilder& builder, Inputs inputs,
                                       uint64_t forced_steps, uint64_t greedy_steps) const {
  const Tensor x = embedded(builder, inputs[source_table], inputs[control], at.source, source);
  const RecurrentLayer::Result encoded =
      encoder.of(inputs)(builder, x, RowLengths{inputs[control], at.lengths});
  const AttentionMemory attends = attention(inputs);
  const RecurrentMemory memory = {
      builder.activation({batch, source, attends.columns()}),
      builder.activation({attends.control(batch).words}, DataType::kU32)};
  attends.project(builder, encoded.outputs, {inputs[control], at.lengths}, at.factor, memory);
  std::vector<Tensor> outputs = {encoded.outputs, encoded.forward_state, *encoded.backward_state};
  for (bool forced : {true, false}) {
    const Steps steps =
        decode(builder, inputs, encoded, memory, forced ? forced_steps : greedy_steps, forced);
    outputs.insert(outputs.end(), {steps.states, steps.maps, steps.logits, steps.attentional});
    if (!forced) outputs.push_back(steps.ids);
  }
  return outputs;
}

}  // namespace

OpCase translation_vector(RecurrentEntry entry) {
  const uint64_t units = entry.units;
  Translation t{};
  t.units = units;
  t.vocabulary = extent(entry.json, "vocab", 1);
  t.embed = extent(entry.json, "embed", 1);
  t.source = extent(entry.json, "src_len", 1);
  t.input_feeding = entry.json.at("attention_dim").is_null();
  t.attention_size = t.input_feeding ? units : extent(entry.json, "attention_dim", 1);
  const uint64_t forced = extent(entry.json, "forced_steps", 1),
                 greedy = extent(entry.json, "greedy_steps", 1), context = 2 * units;
  const auto start = static_cast<uint32_t>(extent(entry.json, "bos_id", 0));
  t.batch = recorded_rows(entry.file, entry.name + "/in_src");

  ControlWords control;
  t.at.lengths = control.append(entry.numbers("in_lengths", {t.batch}, t.source + 1));
  t.at.factor = control.append(std::vector{1.0f});
  t.at.source = control.append(entry.numbers("in_src", {t.batch, t.source}, t.vocabulary));
  // The ids are stored step by step, all rows of a step together.
  const std::vector<uint32_t> fed = entry.numbers("forced_y_in", {t.batch, forced}, t.vocabulary);
  std::vector<uint32_t> by_step;
  for (uint64_t step = 0; step < forced; ++step) {
    for (uint64_t row = 0; row < t.batch; ++row) by_step.push_back(fed[row * forced + step]);
  }
  t.at.forced = control.append(by_step);
  t.at.start = control.append(std::vector<uint32_t>(t.batch, start));
  t.at.rules.banned = control.append(std::vector{0u});  // none are banned
  t.at.rules.position = control.append(std::vector{0u});
  t.at.rules.by_position = control.append(
      std::vector{shader::PositionRules{.last = {0xffffffff, 0}, .first = {0xffffffff, 0}}});
  t.control = entry.words(control.words());
  t.source_table = entry.matrix("w_emb_src", t.vocabulary, t.embed);
  t.target_table = entry.matrix("w_emb_tgt", t.vocabulary, t.embed);
  t.encoder = entry.directions("w_enc_", 0, t.embed);
  t.initial = entry.linear("w_init", units, units, "w_init_bias");
  t.cell = entry.cell_part("w_dec_", "", t.embed + (t.input_feeding ? units : context));
  if (t.input_feeding) {
    t.key = entry.linear("w_a", units, context);
    t.combine = entry.linear("w_c", units, context + units);
    t.output = entry.linear("w_out", t.vocabulary, units, "w_out_bias");
  } else {
    t.query = entry.linear("w_q", t.attention_size, units, "w_b");
    t.key = entry.linear("w_k", t.attention_size, context);
    t.vector = entry.input({1, t.attention_size}, entry.tensor("w_v", {t.attention_size}).values);
    t.output = entry.linear("w_out", t.vocabulary, units + context + t.embed, "w_out_bias");
  }

  std::vector<CpuTensor> expected = {Expected({t.batch, t.source, context}, entry.weights)
                                         .add(entry.tensor("enc_out", {t.batch, t.source, context}))
                                         .tensor()};
  entry.expect_states(expected, t.encoder.forward.kind, 1, t.batch, "enc_");
  for (const auto& [prefix, steps] : {std::pair{"forced_", forced}, {"greedy_", greedy}}) {
    const auto recorded = [&, prefix = prefix, steps = steps](const char* what, uint64_t columns) {
      return entry.tensor(std::string(prefix) + what, {t.batch, steps, columns});
    };
    expected.push_back(Expected({2, t.batch, steps, units}, entry.weights)
                           .add(recorded("h", units))
                           .add(recorded("c", units))
                           .tensor());
    expected.push_back(Expected({t.batch, steps, t.source}, entry.weights)
                           .add(recorded("weights", t.source))
                           .tensor());
    expected.push_back(Expected({t.batch, steps, t.vocabulary}, entry.weights)
                           .add(recorded("logits", t.vocabulary))
                           .tensor());
    expected.push_back(Expected({t.batch, steps, units}, entry.weights)
                           .add(recorded("attentional", units))
                           .tensor());
  }
  expected.push_back(u32_tensor(entry.numbers("greedy_ids", {t.batch, greedy}, t.vocabulary)));
  return entry.finish([=](ProgramBuilder& builder,
                          Inputs inputs) { return t.build(builder, inputs, forced, greedy); },
                      std::move(expected));
}

}  // namespace mulciber::conformance
