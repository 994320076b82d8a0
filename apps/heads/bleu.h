// BLEU of translations against one reference each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mulciber::apps {

/// The tokens of mteval-v13a ("13a"): ASCII punctuation stands alone, except periods and commas
/// between digits.
std::vector<std::string> tokenize_13a(std::string_view text);

/// Corpus BLEU in 0 to 100: up to 4-grams, 13a tokens, case ignored, exponential smoothing of
/// counts that are 0, as sacreBLEU computes it with `lowercase=True` (Papineni et al. 2002; Post
/// 2018, arXiv:1804.08771). UTF-8. Throws ShapeError when the numbers of texts differ; without
/// texts BLEU is 0.
double corpus_bleu(std::span<const std::string> translations,
                   std::span<const std::string> references);

}  // namespace mulciber::apps
