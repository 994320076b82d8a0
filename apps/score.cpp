// `mulciber score`: log probabilities of given texts, token by token, or of their continuations.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "apps/cli/interrupt_watch.h"
#include "apps/cli/language_model.h"
#include "apps/cli/lines.h"
#include "apps/cli/progress.h"
#include "apps/cli/standard_error.h"
#include "apps/cli/text_lines.h"
#include "checkpoints/json.h"
#include "models/families/open_model.h"
#include "mulciber/text_generator.h"

namespace mulciber::apps {
namespace {

struct ScoreArguments {
  CommonOptions common;
  LanguageModelOptions model;
  std::string file;
  uint32_t top = 0;
  bool pairs = false, whole = false, ranks = false, bare = false, stats = false;
};

/// The context and the continuation in a line.
ScoreInput pair_of(const std::string& line, size_t number) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos)
    throw ModelError(fmt::format("line {}", number), "has no tab between context and continuation",
                     "leave --pairs out for lines that are texts");
  return {line.substr(0, tab), line.substr(tab + 1)};
}

std::vector<ScoreInput> read_inputs(const ScoreArguments& options) {
  std::vector<ScoreInput> inputs;
  if (options.whole) return {{"", read_whole(options.file)}};
  const std::vector<std::string> lines = read_lines(options.file);
  for (size_t i = 0; i < lines.size(); ++i)
    inputs.push_back(options.pairs ? pair_of(lines[i], i + 1) : ScoreInput{"", lines[i]});
  return inputs;
}

/// Whether each continuation is the best for its context, by sum and by mean. Continuations of one
/// context stand one after another.
struct Best {
  bool sum = false, mean = false;
};
std::vector<Best> best_of(std::span<const ScoreInput> inputs, std::span<const TextScore> scores) {
  std::vector<Best> best(inputs.size());
  for (size_t first = 0, end = 0; first < inputs.size(); first = end) {
    end = first + 1;
    while (end < inputs.size() && inputs[end].context == inputs[first].context) ++end;
    const auto group = scores.subspan(first, end - first);
    if (!std::ranges::all_of(group, &TextScore::complete)) continue;
    const auto number = [&](auto of) {
      return first + static_cast<size_t>(std::ranges::max_element(group, {}, of) - group.begin());
    };
    best[number([](const TextScore& score) { return score.sum; })].sum = true;
    best[number([](const TextScore& score) { return score.mean(); })].mean = true;
  }
  return best;
}

class ScoreRun {
 public:
  explicit ScoreRun(const ScoreArguments& options)
      : options_(options), inputs_(read_inputs(options)), model_(open_model(options.model.model)) {
    model_->require(Capability::kContinueText);
    device_ = open_tuned_device(options.common, options.model, *model_);
    generator_.emplace(load(options.model, device_, model_, options.common.verbose));
  }

  int run() {
    std::atomic<bool> cancel{false};
    const InterruptWatch watch(cancel);
    Progress progress("score", inputs_.size());
    const TextScores found = generator_->score(
        inputs_, {.add_special = !options_.bare,
                  .likeliest = options_.top,
                  .ranks = options_.ranks || options_.top > 0,
                  .cancel = &cancel,
                  .progress = [&](size_t done, size_t) { progress.update(done); }});
    progress.finish();
    const std::vector<Best> best =
        options_.pairs ? best_of(inputs_, found.texts) : std::vector<Best>();
    for (size_t i = 0; i < inputs_.size() && found.texts[i].complete; ++i) {
      const Best* marks = best.empty() ? nullptr : &best[i];
      output_.line(options_.common.json ? object(inputs_[i], found.texts[i], marks)
                                        : text(inputs_[i], found.texts[i], marks));
    }
    output_.flush();
    if (options_.stats) tell_statistics(found.statistics);
    return finish(*device_, options_.common, cancel ? kInterrupted : kSuccess);
  }

 private:
  std::string object(const ScoreInput& input, const TextScore& score, const Best* best) const {
    nlohmann::json result = {{"text", input.text}};
    if (best) {
      result["context"] = input.context;
      result["best_sum"] = best->sum;
      result["best_mean"] = best->mean;
    }
    result["ids"] = score.ids;
    result["sum"] = score.sum;
    result["mean"] = score.mean();
    nlohmann::json& tokens = result["tokens"] = nlohmann::json::array();
    for (const TokenScore& token : score.tokens) {
      nlohmann::json& one =
          tokens.emplace_back(nlohmann::json{{"id", token.id},
                                             {"token", generator_->token_text(token.id)},
                                             {"log_probability", token.log_probability}});
      if (options_.ranks || options_.top > 0) one["rank"] = token.rank;
      for (const TokenProbability& other : token.likeliest)
        one["likeliest"].push_back({{"id", other.id},
                                    {"token", generator_->token_text(other.id)},
                                    {"log_probability", other.log_probability}});
    }
    return json_line(result);
  }

  std::string text(const ScoreInput& input, const TextScore& score, const Best* best) const {
    std::string line =
        fmt::format("{:.4f}\t{:.4f}\t{}", score.sum, score.mean(), score.tokens.size());
    if (best)
      line += fmt::format("\t{}\t{}",
                          best->sum && best->mean ? "best"
                          : best->sum             ? "best sum"
                          : best->mean            ? "best mean"
                                                  : "",
                          input.context);
    line += "\t" + input.text;
    if (!options_.ranks && options_.top == 0) return line;
    for (const TokenScore& token : score.tokens) {
      line += fmt::format("\n  {:.4f}\t{}\t{}", token.log_probability, token.rank,
                          generator_->token_text(token.id));
      for (const TokenProbability& other : token.likeliest)
        line += fmt::format("\t{} {:.4f}", generator_->token_text(other.id), other.log_probability);
    }
    return line;
  }

  void tell_statistics(const ScoreStatistics& s) const {
    tell("tokens      {} scored, {} read, {} of them held from the text before\n", s.scored_tokens,
         s.read_tokens + s.reused_tokens, s.reused_tokens);
    tell("seconds     {:.3f} in all, {:.3f} of them making programs; {:.1f} tokens/s\n",
         s.total_seconds, s.build_seconds,
         per_second(s.read_tokens, s.total_seconds - s.build_seconds));
  }

  const ScoreArguments& options_;
  std::vector<ScoreInput> inputs_;
  std::shared_ptr<const OpenModel> model_;
  std::shared_ptr<Device> device_;
  std::optional<TextGenerator> generator_;
  Output output_{""};
};

}  // namespace

void add_score(Command& app, int& code) {
  const auto options = std::make_shared<ScoreArguments>();
  Command command = app.add_subcommand(
      "score", "Give the log probability of each token of a text, or of what continues it");
  add_language_model_options(command, options->model);
  command.add_option("FILE", options->file, "one text a line (default, and -: standard input)");
  const Option whole = command.add_flag("--whole", options->whole, "the whole file is one text");
  command
      .add_flag("--pairs", options->pairs,
                "lines are CONTEXT<TAB>CONTINUATION: continuations alone are scored, and lines "
                "with one context compared")
      .excludes(whole);
  command.add_option("--top", options->top, "the likeliest alternatives of each token, and ranks")
      .range(1, 1000);
  command.add_flag("--ranks", options->ranks, "each token's rank, 0 for the likeliest");
  command.add_flag("--bare", options->bare,
                   "leave out what the model expects in front of a text (<s>, <bos>): the first "
                   "token then has no probability");
  command.add_flag("--stats", options->stats, "tokens and times, on standard error");
  add_common_options(command, options->common);
  command.footer(
      "Prints for each line the sum and the mean of its tokens' natural log probabilities, their "
      "number, and the line; with --top\n"
      "or --ranks a line for each token below: log probability, rank, token, alternatives. --json "
      "prints an object a line with\n"
      "all of it. A context and its continuation are cut into tokens together; with --pairs, of "
      "neighbouring lines with one\n"
      "context the likeliest continuation by sum and by mean is marked. A text longer than "
      "--context is an error.\n\n"
      "Exit code: 0 success, 2 bad input, 4 no device or a device failure, 130 interrupted (with "
      "what was scored).\n"
      "Example: mulciber score -m gemma-3-270m.gguf --top 5 --json lines.txt");
  command.callback([options, &code] { code = ScoreRun(*options).run(); });
}

}  // namespace mulciber::apps
