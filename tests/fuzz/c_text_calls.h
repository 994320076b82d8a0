// Calls of the C interface that compute texts at once: translations, scores, tokens, batches and
// embeddings.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "mulciber/c/batch_translator.h"
#include "tests/fuzz/c_run.h"

namespace mulciber::fuzz {

/// What the lists of options point to.
struct OptionLists {
  std::array<uint32_t, 3> ids = {};
  std::array<MulciberIdSequence, 2> sequences = {};
  MulciberHeadMasks masks = {};
  std::array<float, 32> factors = {};
  MulciberCancel* cancel = nullptr;

  OptionLists() = default;
  OptionLists(const OptionLists&) = delete;
  ~OptionLists() { mulciber_destroy_cancel(cancel); }

  const MulciberIdSequence* id_sequences(Run& r) {
    for (uint32_t& id : ids) id = r.in.number();
    const uint32_t size = r.in.size_of<MulciberIdSequence>() == 8 ? 8 : sizeof(sequences[0]);
    for (MulciberIdSequence& sequence : sequences)
      sequence = {size, r.in.byte() % 4u, r.in.or_null(ids.data())};
    if (r.in.rarely()) sequences[0].size = r.in.byte() & 4;
    return r.in.or_null(sequences.data());
  }
  const MulciberHeadMasks* head_masks(Run& r) {
    masks = r.in.structure<MulciberHeadMasks>();
    constexpr uint32_t kCounts[] = {0, 6, 9, 1, 32};
    for (float& factor : factors) factor = 1;
    factors[r.in.byte() % factors.size()] = r.in.single();
    masks.encoder_count = kCounts[r.in.byte() % std::size(kCounts)];
    masks.decoder_count = kCounts[r.in.byte() % std::size(kCounts)];
    masks.cross_count = kCounts[r.in.byte() % std::size(kCounts)];
    masks.encoder = masks.decoder = r.in.or_null(factors.data());
    masks.cross = factors.data();
    return r.in.or_null(&masks);
  }
  MulciberCancel* cancelled(Run& r) {
    if (mulciber_create_cancel(r.l.context, &cancel) == MULCIBER_OK && r.in.flag())
      mulciber_request_cancel(cancel);
    return cancel;
  }
};

/// Each function reads its arguments from the input, makes one call and checks what it returns.
struct TextCalls {
  static const MulciberTranslateInfo* options(Run& r, MulciberTranslateInfo& to,
                                              OptionLists& lists) {
    const auto* given = r.translate_info(to);
    if (r.in.flag()) to.set_length_penalty = 1, to.length_penalty = r.in.single();
    if (r.in.flag()) to.set_early_stopping = 1, to.early_stopping = r.in.flag();
    if (r.in.flag()) to.n_best = r.in.byte() % 4;
    if (r.in.rarely()) to.source_language = "de";
    if (r.in.rarely()) to.target_language = "";
    if (r.in.flag()) {
      to.banned_sequences = lists.id_sequences(r);
      to.banned_sequence_count = r.in.byte() % 3;
      to.banned_tokens = r.in.or_null(lists.ids.data());
      to.banned_token_count = r.in.byte() % 4;
    }
    if (r.in.flag()) to.head_masks = lists.head_masks(r);
    if (r.in.rarely()) to.source_ids = lists.id_sequences(r);
    return given;
  }
  /// Options of calls that wait.
  static void options_at_once(Run& r, MulciberTranslateInfo& to, OptionLists& lists) {
    to.attention = r.in.flag();
    if (r.in.flag()) to.batch_tokens = r.in.number();
    if (r.in.flag()) to.batch_sentences = r.in.number();
    if (r.in.flag())
      to.on_progress = [](void*, uint64_t done, uint64_t total) {
        require(done <= total, "no more texts are done than there are");
      };
    if (r.in.rarely()) to.cancel = lists.cancelled(r);
  }
  static void require_whole(const MulciberTranslation& one) {
    require(one.size == sizeof(one), "a translation has its size");
    require(one.text != nullptr, "a translation has a text");
    for (uint32_t i = 0; i < one.id_count; ++i) require(one.tokens[i] != nullptr, "its tokens");
    for (uint32_t i = 0; i < one.alternative_count; ++i)
      require(one.alternatives[i].text != nullptr, "texts of alternatives");
  }

  static void translate(Run& r) {
    MulciberTranslateInfo info;
    OptionLists lists;
    MulciberTranslator* translator = r.translators.pick(r.in);
    const std::string one = r.in.text(), other = r.in.text();
    const char* const texts[] = {one.c_str(), r.in.or_null(other.c_str())};
    const auto* given = options(r, info, lists);
    options_at_once(r, info, lists);
    const uint32_t count = r.in.byte() % 3;
    const char* const* list = info.source_ids && !r.in.rarely() ? nullptr : r.in.or_null(texts);
    MulciberResult* result = nullptr;
    const MulciberTranslation* found = nullptr;
    r.made(mulciber_translate(r.context(), translator, count, list, given, &result, &found),
           result);
    for (uint32_t i = 0; result && i < count; ++i) require_whole(found[i]);
    mulciber_destroy_result(result);
  }
  static void score(Run& r) {
    auto info = r.in.structure<MulciberTranslationScoreInfo>();
    OptionLists lists;
    MulciberTranslator* translator = r.translators.pick(r.in);
    const std::string one = r.in.text(), other = r.in.text();
    const char* const sources[] = {one.c_str(), other.c_str()};
    const char* const targets[] = {other.c_str(), r.in.or_null(one.c_str())};
    if (r.in.flag()) info.head_masks = lists.head_masks(r);
    if (r.in.rarely()) info.source_ids = info.target_ids = lists.id_sequences(r);
    const bool of_ids = info.source_ids != nullptr;
    const uint32_t count = r.in.byte() % 3;
    MulciberResult* result = nullptr;
    const MulciberTranslationScore* found = nullptr;
    r.made(mulciber_score_translations(r.context(), translator, count, of_ids ? nullptr : sources,
                                       of_ids ? nullptr : targets, r.in.or_null(&info), &result,
                                       &found),
           result);
    for (uint32_t i = 0; result && i < count; ++i)
      require(found[i].log_probability <= 0, "probabilities are at most 1");
    mulciber_destroy_result(result);
  }
  static void tokens(Run& r) {
    MulciberTranslateInfo info;
    OptionLists lists;
    const MulciberTranslator* translator = r.translators.pick(r.in);
    const std::string text = r.in.text();
    const auto side = static_cast<MulciberTranslationSide>(r.in.byte() % 3);
    const auto* given = options(r, info, lists);
    MulciberResult* result = nullptr;
    const MulciberTranslationTokens* found = nullptr;
    const char* words = nullptr;
    const uint32_t ids[] = {r.in.number(), r.in.number()};
    if (r.in.flag()) {
      r.made(mulciber_translator_text(r.context(), translator, side, 2, r.in.or_null(ids), &result,
                                      &words),
             result);
    } else if (r.made(
                   mulciber_translator_tokens(r.context(), translator, side,
                                              r.in.or_null(text.c_str()), given, &result, &found),
                   result)) {
      std::vector<uint32_t> same(found->count);
      require(mulciber_translator_ids(r.l.context, translator, side, found->count, found->tokens,
                                      same.data()) == MULCIBER_OK,
              "tokens have ids");
    }
    mulciber_destroy_result(result);
  }
  static void batch(Run& r) {
    auto info = r.in.structure<MulciberBatchTranslatorInfo>();
    info.slots = r.in.byte() % 4;
    MulciberTranslator* translator = r.translators.pick(r.in);
    MulciberBatchTranslator* made = nullptr;
    r.made(mulciber_create_batch_translator(r.context(), translator, r.in.or_null(&info), &made),
           made);
    std::array<OptionLists, 2> lists;
    uint32_t told = 0, accepted = 0;
    for (OptionLists& each : lists) {
      MulciberTranslateInfo options_of_one;
      const std::string text = r.in.text();
      auto request = r.in.structure<MulciberTranslationRequest>();
      request.text = r.in.or_null(text.c_str());
      request.info = options(r, options_of_one, each);
      if (r.in.rarely()) options_at_once(r, options_of_one, each);
      request.on_end = [](void* user, uint64_t, const MulciberTranslation* translation) {
        ++*static_cast<uint32_t*>(user);
        require_whole(*translation);
      };
      request.on_error = [](void* user, uint64_t, MulciberStatus status, const char*) {
        ++*static_cast<uint32_t*>(user);
        require(status == MULCIBER_ERROR_MODEL || status == MULCIBER_ERROR_OUT_OF_MEMORY,
                "an error that a request can have");
      };
      request.user = &told;
      uint64_t number = 0;
      const MulciberStatus status =
          mulciber_submit_translation(r.context(), made, &request, &number);
      r.told(status);
      // A structure that is cut has no callbacks.
      accepted += status == MULCIBER_OK && request.size >= sizeof(request);
      if (r.in.rarely()) mulciber_cancel_translation(made, number);
    }
    MulciberBool busy = made != nullptr;
    for (int i = 0; i < 200 && busy; ++i)
      r.told(mulciber_step_translations(r.last = r.l.context, made, &busy));
    require(!busy, "a batch comes to its end");
    if (made) require(told == accepted, "each request is told once");
    mulciber_destroy_batch_translator(made);
  }
  static void embed_texts(Run& r) {
    MulciberEmbedInfo info;
    MulciberApplicationBuffer rows;
    OptionLists lists;
    MulciberTextEncoder* encoder = r.text_encoders.pick(r.in);
    const std::string one = r.in.text(), other = r.in.text();
    const char* const texts[] = {one.c_str(), r.in.or_null(other.c_str())};
    const auto* given = r.embed_info(info, rows);
    if (!r.in.rarely()) info.embeddings = nullptr;
    info.pooling = static_cast<MulciberPooling>(r.in.byte() % 9);
    if (r.in.flag()) info.set_normalize = 1, info.normalize = r.in.flag();
    if (r.in.rarely()) info.prompt_name = "query";
    if (r.in.flag()) info.dimensions = r.in.number();
    if (r.in.flag()) info.batch_tokens = r.in.number();
    if (r.in.flag()) info.batch_texts = r.in.number();
    if (r.in.rarely()) info.ids = lists.id_sequences(r);
    if (r.in.rarely()) info.cancel = lists.cancelled(r);
    const uint32_t count = r.in.byte() % 3;
    const char* const* list = info.ids ? nullptr : r.in.or_null(texts);
    MulciberResult* result = nullptr;
    const MulciberTextVector* found = nullptr;
    const auto embed = r.in.flag() ? mulciber_text_states : mulciber_embed_texts;
    r.made(embed(r.context(), encoder, count, list, given, &result, &found), result);
    for (uint32_t i = 0; result && i < count; ++i)
      require((found[i].values != nullptr) == (found[i].complete != 0),
              "what is complete is there");
    mulciber_destroy_result(result);
  }
  static void describe(Run& r) {
    auto translator = r.in.structure<MulciberTranslatorReport>();
    auto encoder = r.in.structure<MulciberTextEncoderReport>();
    auto counts = r.in.structure<MulciberTranslateStatistics>();
    auto encoder_counts = r.in.structure<MulciberEncoderStatistics>();
    const MulciberTranslator* of = r.translators.pick(r.in);
    const MulciberTextEncoder* by = r.text_encoders.pick(r.in);
    switch (r.in.byte() % 4) {
      case 0:
        return r.told(mulciber_describe_translator(r.context(), of, r.in.or_null(&translator)));
      case 1:
        return r.told(mulciber_describe_text_encoder(r.context(), by, r.in.or_null(&encoder)));
      case 2: return r.told(mulciber_translator_statistics(r.context(), of, r.in.or_null(&counts)));
      default:
        return r.told(
            mulciber_text_encoder_statistics(r.context(), by, r.in.or_null(&encoder_counts)));
    }
  }
  static void trim_encoder(Run& r) {
    uint64_t bytes = 0;
    MulciberTextEncoder* encoder = r.text_encoders.pick(r.in);
    r.told(mulciber_trim_text_encoder(r.context(), encoder, r.in.or_null(&bytes)));
  }
};

}  // namespace mulciber::fuzz
