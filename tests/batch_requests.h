// Requests to a BatchGenerator over the small model of tests/data, and what their callbacks got.
#pragma once

#include <bit>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "mulciber/batch_generator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"

namespace mulciber::tests {

/// What the callbacks of a request got.
struct Told {
  std::vector<uint32_t> ids;
  std::string text;
  /// The bits of the log probabilities: equal only where the values are.
  std::vector<uint32_t> bits;
  std::vector<TokenProbability> likeliest;  // entries of all tokens, in order
  std::vector<size_t> prompt;               // prompt tokens done, at each call
  std::optional<Generation> end;
  std::string error;
};

inline std::shared_ptr<const OpenModel> small_model() {
  static const std::shared_ptr<const OpenModel> model = open_model(small_decoder().string());
  return model;
}

/// The small model with a window of 20 tokens in every layer.
inline std::shared_ptr<const OpenModel> windowed_model() {
  static std::vector<std::string> names, contents;
  if (names.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(small_decoder())) {
      names.push_back(entry.path().filename());
      contents.push_back(read_file(entry.path()));
      if (names.back() != "config.json") continue;
      nlohmann::json config = nlohmann::json::parse(contents.back());
      for (nlohmann::json& layer : config["layer_types"]) layer = "sliding_attention";
      config["sliding_window"] = 20;
      contents.back() = config.dump();
    }
  }
  std::vector<LentFile> files;
  for (size_t i = 0; i < names.size(); ++i)
    files.push_back({.name = names[i], .bytes = std::as_bytes(std::span(contents[i]))});
  return open_model(std::move(files), "the model with windows");
}

inline BatchGenerator batch_of(uint32_t sequences, uint32_t context = 96,
                               KeyValueStorage storage = KeyValueStorage::kF16,
                               uint32_t steps_per_submission = 0) {
  BatchGeneratorOptions options;
  options.steps_per_submission = steps_per_submission;
  options.generator.context = context;
  options.generator.sequences = sequences;
  options.generator.key_values = storage;
  options.prompt_tokens = 8;
  return {shared_handle(), small_model(), options};
}

inline uint64_t submit(BatchGenerator& batch, BatchRequest request, Told& told) {
  request.on_prompt = [&told](size_t done, size_t) { told.prompt.push_back(done); };
  request.on_token = [&told](const BatchToken& token) {
    told.ids.push_back(token.id);
    told.text += token.piece;
    if (token.log_probability) told.bits.push_back(std::bit_cast<uint32_t>(*token.log_probability));
    told.likeliest.insert(told.likeliest.end(), token.likeliest.begin(), token.likeliest.end());
  };
  request.on_end = [&told](const Generation& generation, std::string_view last) {
    CHECK_FALSE(told.end);
    told.text += last;
    told.end = generation;
  };
  request.on_error = [&told](const std::exception& error) { told.error = error.what(); };
  return batch.submit(std::move(request));
}

inline Told answer_alone(const BatchRequest& request, uint32_t sequences) {
  BatchGenerator batch = batch_of(sequences);
  Told told;
  submit(batch, request, told);
  while (batch.step()) {
  }
  return told;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr const char* kWords[] = {"red", "hammer", "nails", "old", "house", "blue", "box", "the"};

inline std::string words(std::mt19937& random, int count) {
  std::string text = "The";
  for (int i = 0; i < count; ++i) text += std::string(" ") + kWords[random() % std::size(kWords)];
  return text;
}

/// A random request.
inline BatchRequest some_request(std::mt19937& random) {
  BatchRequest request;
  // Some prompts share a beginning.
  request.prompt = random() % 2 != 0 ? "The old house and the red box and the nails in it, the blue"
                                       " hammer and the old red nails: "
                                     : "";
  request.prompt += words(random, 1 + static_cast<int>(random() % 8));
  request.max_new_tokens = 1 + static_cast<uint32_t>(random() % 14);
  request.ignore_end = true;
  if (random() % 2 != 0) {
    request.sampling = Sampling{.temperature = 1.2f,
                                .top_k = random() % 2 != 0 ? 40u : 0u,
                                .top_p = 0.95f,
                                .repetition_penalty = 1.1f,
                                .seed = random() % 5};
    request.stream = static_cast<uint32_t>(random() % 3);
  }
  if (random() % 4 == 0) request.logit_bias = {{17, -5.f}, {40, 2.f}, {random() % 400, -kInfinity}};
  if (random() % 2 != 0) request.log_probabilities = random() % 3;
  return request;
}

}  // namespace mulciber::tests
