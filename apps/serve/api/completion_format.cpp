#include "apps/serve/api/completion_format.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "checkpoints/json.h"
#include "text/token_stream.h"
#include "text/tokenizers/text.h"

namespace mulciber::apps::serve {
namespace {

/// JSON has no infinity; OpenAI writes this for a token that is as good as impossible.
constexpr float kLeastLogProbability = -9999;

float finite(float log_probability) { return std::max(log_probability, kLeastLogProbability); }

Json with_bytes(const std::string& text, float log_probability) {
  Json bytes = Json::array();
  for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", text}, {"logprob", finite(log_probability)}, {"bytes", std::move(bytes)}};
}

Json completion_probabilities(const std::vector<TokenRecord>& tokens, size_t offset) {
  Json texts = Json::array(), probabilities = Json::array(), tops = Json::array(),
       offsets = Json::array();
  for (const TokenRecord& token : tokens) {
    texts.push_back(token.bytes);
    probabilities.push_back(token.log_probability ? Json(finite(*token.log_probability))
                                                  : Json(nullptr));
    Json top = token.log_probability ? Json::object() : Json(nullptr);
    for (const auto& [text, probability] : token.likeliest) {
      // Keys of JSON must be valid, and two tokens may have one text: the likelier one stays.
      const std::string key = Json::parse(json_line(text)).get<std::string>();
      if (!top.contains(key)) top[key] = finite(probability);
    }
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += count_code_points(token.bytes);
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(probabilities)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

Json chat_logprobs(const std::vector<TokenRecord>& tokens) {
  return {{"content", chat_probabilities(tokens)}, {"refusal", nullptr}};
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// A call, or a later piece of one.
Json call_json(const CallPiece& call) {
  if (call.id.empty()) return {{"function", {{"arguments", call.arguments}}}};
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens", usage.completion_tokens},
          {"completion_tokens_details",
           {{"accepted_prediction_tokens", usage.accepted_tokens},
            {"rejected_prediction_tokens", usage.draft_tokens - usage.accepted_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

}  // namespace

Json chat_probabilities(const std::vector<TokenRecord>& tokens) {
  Json content = Json::array();
  for (const TokenRecord& token : tokens) {
    Json entry = with_bytes(token.bytes, token.log_probability.value_or(0));
    entry["top_logprobs"] = Json::array();
    for (const auto& [text, probability] : token.likeliest)
      entry["top_logprobs"].push_back(with_bytes(text, probability));
    content.push_back(std::move(entry));
  }
  return content;
}

std::string TokenTexts::text_behind(uint32_t id) const {
  const auto token = static_cast<int32_t>(id);
  if (token >= tokenizer_->vocab_size()) return {};
  const auto decode = [&](std::span<const int32_t> ids) {
    return written_text(*tokenizer_, ids, false);
  };
  std::string text;
  if (before_) {
    const std::string before = decode(std::array{*before_});
    const std::string both = decode(std::array{*before_, token});
    if (both.starts_with(before)) text = both.substr(before.size());
  }
  // One U+FFFD may stand for both tokens, where they are parts of a character.
  if (text.empty()) text = decode(std::array{token});
  return token_bytes(*tokenizer_, token, std::move(text));
}

TokenRecord TokenTexts::next(const CompletionEvent& event) {
  return next(event.token->id, event.token->log_probability, event.likeliest);
}

TokenRecord TokenTexts::next(uint32_t id, std::optional<float> log_probability,
                             const std::vector<TokenProbability>& likeliest) {
  TokenRecord record;
  record.bytes = text_behind(id);
  record.log_probability = log_probability;
  for (const TokenProbability& likely : likeliest)
    record.likeliest.emplace_back(text_behind(likely.id), likely.log_probability);
  before_ = static_cast<int32_t>(id);
  return record;
}

Json CompletionFormat::object(const char* of_chat, Json choices) const {
  return {{"id", id},
          {"object", chat ? of_chat : "text_completion"},
          {"created", created},
          {"model", model},
          {"choices", std::move(choices)}};
}

Json CompletionFormat::choice(const CompletionPart& part) const {
  Json choice = {{"index", part.choice}, {"finish_reason", or_null(part.finish_reason)}};
  choice["logprobs"] = !part.tokens ? Json(nullptr)
                       : chat       ? chat_logprobs(*part.tokens)
                                    : completion_probabilities(*part.tokens, part.text_offset);
  if (!chat) choice["text"] = part.text;
  return choice;
}

Json CompletionFormat::whole(const std::vector<CompletionPart>& parts, const Usage& usage) const {
  Json choices = Json::array();
  for (const CompletionPart& part : parts) {
    Json& made = choices.emplace_back(choice(part));
    if (chat) {
      Json message = {{"role", "assistant"}, {"content", part.text}, {"refusal", nullptr}};
      if (!part.calls.empty()) {
        message["tool_calls"] = Json::array();
        for (const CallPiece& call : part.calls) message["tool_calls"].push_back(call_json(call));
        if (part.text.empty()) message["content"] = nullptr;
      }
      made["message"] = std::move(message);
    }
  }
  Json completion = object("chat.completion", std::move(choices));
  completion["usage"] = usage_json(usage);
  return completion;
}

Json CompletionFormat::chunk(const CompletionPart& part, bool first, bool usage_follows) const {
  Json made = choice(part);
  if (chat) {
    Json delta = Json::object();
    if (first) delta["role"] = "assistant";
    if (first || !part.text.empty()) delta["content"] = part.text;
    for (const CallPiece& piece : part.calls) {
      Json call = call_json(piece);
      call["index"] = piece.index;
      delta["tool_calls"].push_back(std::move(call));
    }
    made["delta"] = std::move(delta);
  }
  Json piece = object("chat.completion.chunk", Json::array({std::move(made)}));
  if (usage_follows) piece["usage"] = nullptr;
  return piece;
}

Json CompletionFormat::usage_chunk(const Usage& usage) const {
  Json piece = object("chat.completion.chunk", Json::array());
  piece["usage"] = usage_json(usage);
  return piece;
}

std::string finish_reason(GenerateEnd end) {
  return end == GenerateEnd::kTokenLimit || end == GenerateEnd::kContextFull ? "length" : "stop";
}

}  // namespace mulciber::apps::serve
