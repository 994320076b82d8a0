// Calls of the C interface that complete, tokenize and score texts at once.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "mulciber/c/batch_generator.h"
#include "tests/fuzz/c_run.h"

namespace mulciber::fuzz {

/// Each function reads its arguments from the input, makes calls and checks what they return.
struct CompletionCalls {
  /// Options of completions with what they point to.
  struct Options {
    MulciberGenerateInfo info = {};
    std::string stop;
    const char* stops[2] = {};
    std::array<uint32_t, 3> ids = {};
    std::array<float, 3> biases = {};
    MulciberAdapter adapter = {};

    explicit Options(Run& r) : stop(r.in.text()) {
      info = r.in.structure<MulciberGenerateInfo>();
      info.max_new_tokens = r.in.rarely() ? r.in.number() : r.in.byte() % 8;
      info.ignore_end = r.in.flag();
      info.no_special = r.in.flag();
      info.literal_special = r.in.flag();
      if (r.in.flag()) {
        info.sample = 1;
        info.temperature = r.in.single();
        info.typical_p = r.in.single();
        info.repetition_penalty = r.in.single();
        info.presence_penalty = r.in.single();
        info.frequency_penalty = r.in.single();
        info.penalty_window = r.in.number();
        info.stream = r.in.number();
      }
      if (r.in.flag()) info.grammar = r.grammars.pick(r.in);
      if (r.in.flag()) {
        stops[0] = stop.c_str();
        stops[1] = r.in.or_null("iron");
        info.stops = r.in.or_null(stops);
        info.stop_count = 1 + r.in.flag();
      }
      for (uint32_t& id : ids) id = r.in.rarely() ? r.in.number() : r.in.byte();
      for (float& bias : biases) bias = r.in.single();
      if (r.in.flag()) {
        info.bias_ids = r.in.or_null(ids.data());
        info.biases = r.in.or_null(biases.data());
        info.bias_count = 1 + r.in.byte() % 3;
      }
      info.log_probabilities = r.in.flag();
      info.likeliest = r.in.rarely() ? r.in.number() : r.in.byte() % 4;
      info.attention = r.in.rarely();
      info.shift = r.in.rarely();
      if (r.in.rarely()) info.keep = r.in.number();
      if (r.in.flag()) info.prompt_lookup = r.in.byte() % 4;
      if (r.in.rarely()) info.draft_tokens = r.in.number();
      if (r.in.rarely()) info.draft = r.generators.pick(r.in);
      if (r.in.rarely()) info.steps_per_submission = r.in.number();
      info.no_adapters = r.in.rarely();
      if (r.in.rarely()) {
        adapter = r.in.structure<MulciberAdapter>();
        adapter.name = r.in.or_null("unknown");
        info.adapters = r.in.or_null(&adapter);
        info.adapter_count = 1;
      }
    }
    Options(const Options&) = delete;
    void set_ids(Run& r) {
      info.prompt_ids = r.in.or_null(ids.data());
      info.prompt_id_count = 1 + r.in.byte() % 3;
    }
  };

  static void check(const MulciberCompletion& found) {
    require(found.size == sizeof(found) && found.text != nullptr, "a completion has a text");
    require(found.prompt_count > 0, "a completion has a prompt");
    for (uint32_t i = 0; i < found.id_count; ++i)
      require(found.tokens[i] != nullptr, "texts of tokens");
  }
  static void generate(Run& r) {
    Options options(r);
    const std::string text = r.in.text();
    const char* prompt = r.in.or_null(text.c_str());
    if (r.in.rarely()) options.set_ids(r), prompt = nullptr;
    MulciberResult* result = nullptr;
    const MulciberCompletion* found = nullptr;
    MulciberGenerator* generator = r.generators.pick(r.in);
    if (r.made(mulciber_generate(r.context(), generator, prompt, r.in.or_null(&options.info),
                                 &result, &found),
               result))
      check(*found);
    mulciber_destroy_result(result);
  }
  static void generate_all(Run& r) {
    Options options(r);
    const std::string one = r.in.text(), other = r.in.text();
    const char* const prompts[] = {one.c_str(), r.in.or_null(other.c_str())};
    const uint32_t count = r.in.byte() % 3, lengths[] = {1, 2};
    const bool by_ids = r.in.flag();
    MulciberResult* result = nullptr;
    const MulciberCompletion* found = nullptr;
    MulciberGenerator* generator = r.generators.pick(r.in);
    const MulciberStatus status =
        by_ids ? mulciber_generate_all_ids(r.context(), generator, count, r.in.or_null(lengths),
                                           r.in.or_null(options.ids.data()), &options.info, &result,
                                           &found)
               : mulciber_generate_all(r.context(), generator, count, r.in.or_null(prompts),
                                       &options.info, &result, &found);
    if (r.made(status, result))
      for (uint32_t i = 0; i < count; ++i) check(found[i]);
    mulciber_destroy_result(result);
  }
  static void tokens(Run& r) {
    const Options options(r);
    const std::string text = r.in.text();
    const MulciberGenerator* generator = r.generators.pick(r.in);
    MulciberResult* result = nullptr;
    const char* found = nullptr;
    uint32_t count = 0;
    const uint32_t* ids = nullptr;
    MulciberStatus status = MULCIBER_OK;
    switch (r.in.byte() % 4) {
      case 0:
        status = mulciber_tokenize(r.context(), generator, r.in.or_null(text.c_str()),
                                   &options.info, &result, &count, &ids);
        break;
      case 1:
        status = mulciber_detokenize(r.context(), generator, r.in.byte() % 4,
                                     r.in.or_null(options.ids.data()), &result, &found);
        break;
      case 2:
        status = mulciber_token_text(r.context(), generator, options.ids[0], &result, &found);
        break;
      default: {
        MulciberChatMessage message = r.in.structure<MulciberChatMessage>();
        message.images = r.in.byte() % 3;
        message.role = r.in.or_null("user");
        message.content = r.in.or_null(text.c_str());
        status = mulciber_chat_prompt(r.context(), generator, 1, r.in.or_null(&message), &result,
                                      &found);
      }
    }
    r.made(status, result);
    mulciber_destroy_result(result);
  }
  static void score(Run& r) {
    const std::string context = r.in.text(), text = r.in.text();
    const std::array<uint32_t, 3> ids = {2, r.in.byte(), r.in.number()};
    const std::array<uint32_t, 2> layers = {0, r.in.byte() % 5u};
    auto info = r.in.structure<MulciberScoreInfo>();
    info.no_special = r.in.flag();
    info.parse_special = r.in.flag();
    info.likeliest = r.in.rarely() ? r.in.number() : r.in.byte() % 4;
    info.ranks = r.in.flag();
    auto input = r.in.structure<MulciberScoreInput>();
    if (r.in.flag()) {
      input.ids = r.in.or_null(ids.data());
      input.id_count = 1 + r.in.byte() % 3;
    }
    if (!input.ids || r.in.rarely()) {
      input.context = r.in.flag() ? context.c_str() : nullptr;
      input.text = r.in.or_null(text.c_str());
    }
    MulciberResult* result = nullptr;
    MulciberGenerator* generator = r.generators.pick(r.in);
    if (r.in.flag()) {
      const MulciberTextScore* scores = nullptr;
      auto statistics = r.in.structure<MulciberScoreStatistics>();
      r.made(mulciber_score(r.context(), generator, 1, r.in.or_null(&input), r.in.or_null(&info),
                            &result, &scores, r.in.or_null(&statistics)),
             result);
    } else {
      const MulciberHiddenStates* states = nullptr;
      r.made(mulciber_hidden_states(r.context(), generator, r.in.or_null(text.c_str()), 2,
                                    r.in.or_null(layers.data()), r.in.or_null(&info), &result,
                                    &states),
             result);
    }
    mulciber_destroy_result(result);
  }
  static void report(Run& r) {
    MulciberGenerator* generator = r.generators.pick(r.in);
    auto statistics = r.in.structure<MulciberGeneratorStatistics>();
    auto description = r.in.structure<MulciberGeneratorReport>();
    auto prediction = r.in.structure<MulciberMemoryPrediction>();
    MulciberLoadInfo info;
    const auto* given = r.load_info(info);
    uint64_t freed = 0;
    switch (r.in.byte() % 4) {
      case 0:
        return r.told(
            mulciber_generator_statistics(r.context(), generator, r.in.or_null(&statistics)));
      case 1:
        return r.told(
            mulciber_describe_generator(r.context(), generator, r.in.or_null(&description)));
      case 2: return r.told(mulciber_trim_generator(r.context(), generator, r.in.or_null(&freed)));
      default: {
        MulciberDevice* device = r.devices.pick(r.in);
        const MulciberModel* model = r.models.pick(r.in);
        r.told(mulciber_predict_generator(r.context(), device, model, given,
                                          r.in.or_null(&prediction)));
      }
    }
  }
  /// Requests of a batch, which all have ended then.
  static void batch(Run& r) {
    MulciberBatchGenerator* batch = r.in.or_null(r.l.batch);
    for (uint32_t left = 1 + r.in.byte() % 3; left > 0; --left) {
      Options options(r);
      const std::string text = r.in.text();
      const char* prompt = r.in.or_null(text.c_str());
      if (r.in.rarely()) options.set_ids(r), prompt = nullptr;
      auto request = r.in.structure<MulciberBatchRequest>();
      request.reuse_completions = r.in.flag();
      request.no_draft = r.in.flag();
      request.on_end = [](void*, const MulciberCompletion* found) { check(*found); };
      request.on_error = [](void*, MulciberStatus status, const char* message) {
        require(status != MULCIBER_OK && message[0] != '\0', "an error has a message");
      };
      uint64_t number = 0;
      r.told(mulciber_submit_generation(r.context(), batch, prompt, r.in.or_null(&options.info),
                                        r.in.or_null(&request), &number));
      if (r.in.rarely()) r.told(mulciber_cancel_generation(r.context(), batch, number));
    }
    MulciberBool worked = 0;
    r.told(mulciber_step_generations(r.context(), batch, r.in.or_null(&worked)));
    do {
      r.last = r.l.context;
      r.told(mulciber_step_generations(r.l.context, r.l.batch, &worked));
    } while (worked);
  }
};

}  // namespace mulciber::fuzz
