// What stands behind a BatchGenerator.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/generation/answer.h"
#include "models/generation/answer_grammar.h"
#include "models/generation/batch_draft.h"
#include "models/generation/sequence_slots.h"
#include "models/generation/shared_generator.h"
#include "models/generation/token_scorer.h"
#include "mulciber/batch_generator.h"

namespace mulciber {

/// A request and its answer so far.
struct BatchText {
  uint64_t number = 0;
  BatchRequest request;
  std::vector<uint32_t> prompt;
  std::vector<ShownTile> tiles;    // of its pictures
  std::vector<uint32_t> identity;  // as SlotSequence
  Sampling sampling;
  LogitBiases biases;
  std::vector<float> adapters;  // as chosen_adapters()
  std::optional<AnswerGrammar> grammar;
  bool cancelled = false;
  /// It had a place before and gave way: it says again what it has said, to nobody.
  bool begun = false;
  size_t said_again = 0;
  size_t prompt_told = 0;               // to on_prompt
  uint64_t proposed = 0, accepted = 0;  // tokens
  /// Tokens that a draft model proposes next: more while all are taken, for each costs it a step.
  uint32_t drafted = 4;
  bool by_draft = false;  // what was proposed last
  /// Tokens of the prompt that others had fed; twice where it gave way before it said anything.
  uint64_t reused = 0;
  std::string piece;  // that became certain last
  Answer answer;

  BatchText(uint64_t name, BatchRequest asked, const Tokenizer& tokenizer, ShownPrompt shown);
};

struct BatchGenerator::Impl : SharedGenerator {
  using Text = std::unique_ptr<BatchText>;
  /// A place: who has it, and what it holds.
  struct Place {
    Text text;
    /// Whether the whole prompt is in, and the text grows.
    bool grows = false;
  };

  std::optional<SequenceSlots> slots;
  std::optional<BatchDraft> draft;
  std::optional<TokenScorer> scorer;
  std::vector<Place> places;  // by slot
  std::deque<Text> waiting;
  BatchStatistics statistics;
  uint32_t context = 0;
  uint32_t proposal_rows = 0;  // of a step, at most
  uint64_t next_number = 1;
  uint64_t parts = 0;  // of prompts so far

  void start(std::shared_ptr<Device> on, std::shared_ptr<const OpenModel> files,
             const BatchGeneratorOptions& options);
  std::vector<int32_t> encode(const std::string& text, bool add_special, bool parse_special) const;
  uint64_t submit(BatchRequest request);
  bool step();

  std::optional<TokenAttention> attention(std::span<const uint32_t> ids,
                                          const BatchAttentionOptions& options);

  /// Ends what was cancelled. True where there was something.
  bool end_cancelled();
  /// Gives places to those that wait, in their order.
  void admit();
  /// Whether there are pages for a text and for what is to be expected of those that have a place.
  bool has_room(const BatchText& text);
  /// Tokens that a text is expected to have, prompt and answer.
  uint32_t expected(const BatchText& text) const;
  /// Pages for so many tokens more of a text. Those that came last give way: false where it had to
  /// itself.
  bool make_room(uint32_t slot, uint32_t tokens);
  /// Takes a text's place away. It waits, before those that came after it, and begins again.
  void give_way(uint32_t slot);
  /// The place whose prompt goes on: the one with the least left, so that short ones need not wait
  /// for long ones and first tokens come early; every fourth time the oldest, so that it gets on.
  std::optional<uint32_t> next_prompt();
  /// A part of one prompt, or the embeddings of a picture in it; false where none is left.
  bool feed();
  /// Computes embeddings that the tokens [first, end) of a slot's prompt have; a tile of a picture
  /// at a time, so that others need not wait for all. False where there is nothing to compute.
  bool embed_tile(uint32_t slot, uint32_t first, uint32_t end);
  /// Embeddings that are there for a prompt of which `held` tokens are in.
  static std::vector<GivenRows> given_rows(BatchText& text, uint32_t held);
  /// Moves texts that grow to the first places, where a step over few of them costs less.
  void close_ranks();
  bool decode();
  /// Tokens that may be proposed behind a text, by its settings and limits.
  uint32_t most_proposals(uint32_t slot) const;
  /// Tokens behind each text that grows, by the draft model or looked up. rows: those that there
  /// are to check them.
  std::vector<std::vector<uint32_t>> proposed(std::span<const uint32_t> growing, size_t rows);
  /// What of that is checked: as far as there are free places whose rows can do it, and pages.
  std::vector<SequenceSlots::Proposals> propose(std::span<const uint32_t> growing);
  /// What is chosen behind proposals, by the grammar of their text; leaves out those that the
  /// grammar does not allow, or behind which nothing follows.
  void set_masks(SequenceSlots::Proposals& proposals) const;
  /// Takes what a text chose behind proposals that it chose too.
  void follow(const SequenceSlots::Proposals& proposals);
  /// A text chose an id, or had no finite logits.
  void take(uint32_t slot, const SequenceSlots::Choice& choice);
  /// Has a slot choose by its text's grammar. Gives whether the text has come to its end.
  bool set_mask(uint32_t slot);
  /// The same for a text that says again what it has said.
  void take_again(uint32_t slot, uint32_t choice);
  /// Ends a text whose answer failed.
  void fail(uint32_t slot, const Error& error, bool keep);
  /// Makes a place free. keep: what it holds stays for others, while nobody needs the pages.
  Text leave(uint32_t slot, bool keep = true);
  /// The last call of a text that has left.
  void finish(BatchText& text, GenerateEnd end);
};

}  // namespace mulciber
