// Bidirectional attention flow (Seo et al. 2017, arXiv:1611.01603) between a passage and a
// question: which words of the question matter to each word of the passage, and which words of the
// passage matter to the question. Words are vectors of a sentence encoder, and the similarity
//   s_ij = w . [h_i; u_j; h_i * u_j]
// of passage word i and question word j is the paper's with w = (0, 0, c): nothing is trained.
//   passage_question MODEL PASSAGE QUESTION [MAP.svg]
// Prints the passage's words that matter most to the question, and the question's words to which
// each of them attends. The map has a column for each word of the passage, a row for each of the
// question, and below them the passage's words with their weights for the question.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "mulciber/mulciber.h"

namespace {

using mulciber::FloatArray;

constexpr float kSharpness = 10;  // c: cosines are small numbers, whose softmax is nearly even
constexpr uint64_t kWidestHead = 256;

struct Words {
  std::vector<std::string> texts;
  std::vector<mulciber::TextVector> vectors;

  FloatArray array() const {
    FloatArray all{{1, vectors.size(), vectors.front().values.size()}, {}};
    for (const mulciber::TextVector& vector : vectors)
      all.values.insert(all.values.end(), vector.values.begin(), vector.values.end());
    return all;
  }
};

Words read_words(mulciber::TextEncoder& encoder, const std::string& text) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.texts.push_back(word);
  if (words.texts.empty()) throw std::runtime_error("passage and question have a word or more");
  mulciber::EmbedOptions options;
  options.normalize = true;
  words.vectors = encoder.embed(words.texts, options);
  return words;
}

/// Attention whose scores are given: queries and keys add nothing to them.
mulciber::Attention of_scores(const std::shared_ptr<mulciber::Device>& device, uint64_t columns) {
  uint32_t heads = 1;
  while (columns % heads != 0 || columns / heads > kWidestHead) ++heads;
  mulciber::AttentionDescription description;
  description.heads = heads;
  description.scale = 0.0f;
  return {device, description};
}

struct Flow {
  FloatArray to_question;            // (passage, question): the attention of each passage word
  std::vector<float> from_question;  // (passage): the attention of the question
  FloatArray merged;                 // (passage, 4 * columns): [h; u~; h * u~; h * h~]
};

Flow attention_flow(mulciber::TextEncoder& encoder, const Words& passage, const Words& question) {
  const FloatArray h = passage.array(), u = question.array();
  const uint64_t T = passage.texts.size(), J = question.texts.size(), columns = h.shape[2];
  std::vector<float> similarity = encoder.cosines(passage.vectors, question.vectors);
  for (float& value : similarity) value *= kSharpness;
  mulciber::Attention attention = of_scores(encoder.device(), columns);

  // Context to query: the attention of each passage word over the question.
  mulciber::AttentionInputs towards{.queries = h, .keys = u, .values = u};
  towards.mask = {{1, 1, T, J}, similarity};
  towards.weights = true;
  const mulciber::AttentionResult attended = attention(towards);

  // Query to context: a softmax over the passage of each word's best similarity.
  FloatArray best{{1, 1, 1, T}, {}};
  for (uint64_t t = 0; t < T; ++t)
    best.values.push_back(*std::max_element(similarity.begin() + static_cast<long>(t * J),
                                            similarity.begin() + static_cast<long>((t + 1) * J)));
  const FloatArray one{{1, 1, columns}, std::vector<float>(columns)};
  mulciber::AttentionInputs back{.queries = one, .keys = h, .values = h};
  back.mask = best;
  back.weights = true;
  const mulciber::AttentionResult pooled = attention(back);

  Flow flow;
  // All heads have the same scores.
  flow.to_question = {{T, J},
                      {attended.weights.values.begin(),
                       attended.weights.values.begin() + static_cast<long>(T * J)}};
  flow.from_question.assign(pooled.weights.values.begin(),
                            pooled.weights.values.begin() + static_cast<long>(T));
  flow.merged.shape = {T, 4 * columns};
  for (uint64_t t = 0; t < T; ++t) {
    const float* word = &h.values[t * columns];
    const float* looked = &attended.output.values[t * columns];
    const float* whole = pooled.output.values.data();
    for (uint64_t c = 0; c < columns; ++c) flow.merged.values.push_back(word[c]);
    for (uint64_t c = 0; c < columns; ++c) flow.merged.values.push_back(looked[c]);
    for (uint64_t c = 0; c < columns; ++c) flow.merged.values.push_back(word[c] * looked[c]);
    for (uint64_t c = 0; c < columns; ++c) flow.merged.values.push_back(word[c] * whole[c]);
  }
  return flow;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

void draw(const std::string& path, const Words& passage, const Words& question, const Flow& flow) {
  constexpr int kCell = 22, kLeft = 120, kTop = 120;
  const size_t T = passage.texts.size(), J = question.texts.size();
  const float highest = *std::max_element(flow.from_question.begin(), flow.from_question.end());
  std::ofstream file(path);
  file << "<svg xmlns='http://www.w3.org/2000/svg' font-family='sans-serif' font-size='12' width='"
       << kLeft + kCell * T + 20 << "' height='" << kTop + kCell * (J + 2) << "'>\n";
  const auto cell = [&](size_t column, size_t row, float weight, const char* color) {
    file << "<rect x='" << kLeft + kCell * column << "' y='" << kTop + kCell * row << "' width='"
         << kCell - 1 << "' height='" << kCell - 1 << "' fill='" << color << "' fill-opacity='"
         << weight << "'/>\n";
  };
  for (size_t t = 0; t < T; ++t) {
    file << "<text transform='translate(" << kLeft + kCell * t + 15 << "," << kTop - 6
         << ") rotate(-60)'>" << escaped(passage.texts[t]) << "</text>\n";
    for (size_t j = 0; j < J; ++j) cell(t, j, flow.to_question.values[t * J + j], "#2a78b8");
    cell(t, J, flow.from_question[t] / highest, "#d9722b");
  }
  for (size_t j = 0; j <= J; ++j)
    file << "<text x='" << kLeft - 8 << "' y='" << kTop + kCell * j + 15 << "' text-anchor='end'>"
         << (j < J ? escaped(question.texts[j]) : "the question") << "</text>\n";
  file << "</svg>\n";
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4 || argc > 5) {
    std::fprintf(stderr, "usage: passage_question MODEL PASSAGE QUESTION [MAP.svg]\n");
    return 2;
  }
  mulciber::TextEncoder encoder(mulciber::open_device(), argv[1]);
  const Words passage = read_words(encoder, argv[2]), question = read_words(encoder, argv[3]);
  const Flow flow = attention_flow(encoder, passage, question);
  std::vector<size_t> order(passage.texts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return flow.from_question[a] > flow.from_question[b];
  });
  const size_t J = question.texts.size();
  for (size_t i = 0; i < std::min<size_t>(order.size(), 5); ++i) {
    const auto row = flow.to_question.values.begin() + static_cast<long>(order[i] * J);
    const auto most = std::max_element(row, row + static_cast<long>(J));
    std::printf("%.3f %s (looks at %s, %.3f)\n", static_cast<double>(flow.from_question[order[i]]),
                passage.texts[order[i]].c_str(),
                question.texts[static_cast<size_t>(most - row)].c_str(),
                static_cast<double>(*most));
  }
  if (argc == 5) draw(argv[4], passage, question, flow);
} catch (const std::exception& error) {
  std::fprintf(stderr, "passage_question: %s\n", error.what());
  return 1;
}
