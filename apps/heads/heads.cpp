// `mulciber heads`: ranks a translation model's attention heads by what is lost without each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/cli/command.h"
#include "apps/cli/progress.h"
#include "apps/heads/bleu.h"
#include "mulciber/translator.h"

namespace mulciber::apps {
namespace {

struct HeadsArguments {
  CommonOptions common;
  std::string model, source, reference;
  size_t lines = 100;
  uint32_t beams = 1;
  uint32_t step = 0;
  bool rank_only = false;
};

struct Head {
  const char* kind;
  std::vector<float> HeadMasks::*mask;
  uint32_t layer, head, heads;

  std::string name() const { return fmt::format("{}.{}.{}", kind, layer, head); }
  size_t index() const { return size_t{layer} * heads + head; }
};

std::vector<Head> heads_of(const ModelExtents& extents) {
  struct Kind {
    const char* name;
    std::vector<float> HeadMasks::*mask;
    uint32_t layers, heads;
  };
  std::vector<Head> all;
  for (const Kind& kind :
       {Kind{"encoder", &HeadMasks::encoder, extents.encoder_layers, extents.encoder_heads},
        Kind{"decoder", &HeadMasks::decoder, extents.decoder_layers, extents.decoder_heads},
        Kind{"cross", &HeadMasks::cross, extents.cross_layers, extents.cross_heads}}) {
    for (uint32_t i = 0; i < kind.layers * kind.heads; ++i) {
      all.push_back({kind.name, kind.mask, i / kind.heads, i % kind.heads, kind.heads});
    }
  }
  return all;
}

HeadMasks without(const std::vector<Head>& all, const std::vector<Head>& masked) {
  HeadMasks masks;
  for (const Head& head : all) (masks.*head.mask).push_back(1);
  for (const Head& head : masked) (masks.*head.mask)[head.index()] = 0;
  return masks;
}

std::vector<std::string> read_lines(const std::string& path, size_t most) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ModelError(path, "cannot be read", "give a text file with one sentence a line");
  std::vector<std::string> lines;
  for (std::string line; lines.size() < most && std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

struct Ranked {
  Head head;
  double lost;  // log probability per token, in nats
};

struct Stage {
  std::vector<std::string> masked;
  size_t left;
  double log_probability, bleu;  // per token; 0 to 100
};

class Run {
 public:
  explicit Run(const HeadsArguments& options)
      : options_(options),
        sources_(read_lines(options.source, options.lines)),
        references_(read_lines(options.reference, options.lines)),
        device_(open_device(options.common)),
        translator_(device_, options.model),
        all_(heads_of(translator_.extents())) {
    if (sources_.empty()) throw ModelError(options.source, "has no lines", "");
    if (sources_.size() != references_.size())
      throw ModelError(options.reference,
                       fmt::format("has {} lines, {} has {}", references_.size(), options.source,
                                   sources_.size()),
                       "give one reference for each source line");
    step_ = options.step > 0 ? options.step
                             : std::max<uint32_t>(1, static_cast<uint32_t>(all_.size() / 9));
  }

  int run() {
    const double whole = log_probability({});
    ranking_ = rank({}, whole);
    std::ranges::stable_sort(ranking_, std::greater(), &Ranked::lost);
    if (!options_.rank_only && !interrupted()) prune(whole);
    options_.common.json ? print_json(whole) : print(whole);
    return finish(*device_, options_.common, interrupted() ? kInterrupted : kSuccess);
  }

 private:
  /// The log probability of the references, per token, with heads masked.
  double log_probability(const std::vector<Head>& masked) {
    double sum = 0;
    uint64_t tokens = 0;
    for (const TranslationScore& score :
         translator_.score(sources_, references_, without(all_, masked))) {
      sum += score.log_probability;
      tokens += score.tokens;
    }
    return tokens > 0 ? sum / static_cast<double>(tokens) : 0;
  }

  /// The loss for each remaining head when it is masked too.
  std::vector<Ranked> rank(const std::vector<Head>& masked, double before) {
    std::vector<Ranked> ranked;
    Progress progress(fmt::format("heads, {} masked", masked.size()), all_.size() - masked.size());
    for (const Head& head : all_) {
      if (interrupted()) break;
      if (std::ranges::any_of(masked,
                              [&](const Head& other) { return other.name() == head.name(); }))
        continue;
      std::vector<Head> more = masked;
      more.push_back(head);
      ranked.push_back({head, before - log_probability(more)});
      progress.update(ranked.size());
    }
    progress.finish();
    return ranked;
  }

  /// Masks the least needed heads step by step, and ranks the others anew after each.
  void prune(double whole) {
    std::vector<Head> masked;
    double now = whole;
    add_stage(masked, now);
    std::vector<Ranked> left = ranking_;
    while (!interrupted() && !left.empty()) {
      std::ranges::stable_sort(left, std::less(), &Ranked::lost);
      for (size_t i = 0; i < std::min<size_t>(step_, left.size()); ++i)
        masked.push_back(left[i].head);
      now = log_probability(masked);
      add_stage(masked, now);
      left = rank(masked, now);
    }
  }

  void add_stage(const std::vector<Head>& masked, double log_probability_now) {
    TranslateOptions settings;
    settings.beams = options_.beams;
    settings.head_masks = without(all_, masked);
    std::vector<std::string> texts;
    for (const Translation& translation : translator_.translate(sources_, settings))
      texts.push_back(translation.text);
    Stage stage{
        {}, all_.size() - masked.size(), log_probability_now, corpus_bleu(texts, references_)};
    for (const Head& head : masked) stage.masked.push_back(head.name());
    stages_.push_back(std::move(stage));
  }

  void print(double whole) {
    fmt::print("{} heads, {} pairs of sentences, log probability of a reference's token {:.4f}\n\n",
               all_.size(), sources_.size(), whole);
    fmt::print("without it a token's log probability falls by\n");
    for (const Ranked& entry : ranking_)
      fmt::print("{:>14}  {:8.4f}\n", entry.head.name(), entry.lost);
    if (stages_.empty()) return;
    fmt::print("\nheads left    BLEU  log probability\n");
    for (const Stage& stage : stages_)
      fmt::print("{:>10}  {:6.2f}  {:15.4f}\n", stage.left, stage.bleu, stage.log_probability);
    const double floor = stages_.front().bleu - 1;
    const auto last = std::find_if(stages_.rbegin(), stages_.rend(),
                                   [&](const Stage& stage) { return stage.bleu >= floor; });
    if (last->masked.empty()) return;
    fmt::print("\nWithin 1 BLEU with {} of {} heads masked:\n  --mask-heads {}\n",
               last->masked.size(), all_.size(), fmt::join(last->masked, " "));
  }

  void print_json(double whole) {
    nlohmann::json heads = nlohmann::json::array(), stages = nlohmann::json::array();
    for (const Ranked& entry : ranking_) {
      heads.push_back({{"head", entry.head.name()},
                       {"kind", entry.head.kind},
                       {"layer", entry.head.layer},
                       {"index", entry.head.head},
                       {"lost", entry.lost}});
    }
    for (const Stage& stage : stages_) {
      stages.push_back({{"left", stage.left},
                        {"bleu", stage.bleu},
                        {"log_probability", stage.log_probability},
                        {"masked", stage.masked}});
    }
    fmt::print("{}\n", nlohmann::json{{"pairs", sources_.size()},
                                      {"log_probability", whole},
                                      {"heads", heads},
                                      {"pruning", stages}}
                           .dump());
  }

  const HeadsArguments& options_;
  const std::vector<std::string> sources_, references_;
  std::shared_ptr<Device> device_;
  Translator translator_;
  const std::vector<Head> all_;
  uint32_t step_ = 1;
  std::vector<Ranked> ranking_;
  std::vector<Stage> stages_;
};

}  // namespace

void add_heads(Command& app, int& code) {
  auto options = std::make_shared<HeadsArguments>();
  Command command =
      app.add_subcommand("heads", "Rank attention heads by what a translation loses without each");
  command.add_option("-m,--model", options->model, "Hugging Face folder of a translation model")
      .required()
      .type_name("DIR");
  command.add_option("--source", options->source, "text to translate, one sentence a line")
      .required()
      .type_name("FILE");
  command.add_option("--reference", options->reference, "its translation by a person, line by line")
      .required()
      .type_name("FILE");
  command.add_option("-n,--lines", options->lines, "lines of both that are used")
      .shows_default()
      .range(1, 1000000);
  command.add_option("-b,--beam", options->beams, "beams of the search whose BLEU is told")
      .shows_default()
      .range(1, 32);
  command.add_option("--step", options->step, "heads masked at a time (default: a ninth of them)")
      .range(1, 100000);
  command.add_flag("--rank-only", options->rank_only,
                   "rank the heads, and mask no more than one at a time");
  add_common_options(command, options->common);
  command.footer(
      "A head's score is how far the log probability of the reference's tokens falls when its "
      "output is masked\n"
      "(Michel et al. 2019, Voita et al. 2019). Then the least needed heads are masked step by "
      "step, ranked anew\n"
      "after each, and the translations' BLEU is told. Nothing is trained again.\n\n"
      "Example: mulciber heads -m assets/en-de --source test.en --reference test.de");
  command.callback([options, &code] { code = Run(*options).run(); });
}

}  // namespace mulciber::apps
