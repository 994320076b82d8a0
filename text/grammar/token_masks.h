// Which tokens of a vocabulary may come next.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/grammar/matcher.h"

namespace mulciber {

class Tokenizer;

/// The tokens of a vocabulary as a tree of their bytes, from the front.
class TokenTree {
 public:
  static constexpr uint32_t kNoToken = UINT32_MAX;
  struct Node {
    uint32_t end;    // number of the node behind those below it
    uint32_t token;  // kNoToken: none ends here
    uint16_t depth;  // bytes, its own included
    uint8_t byte;
  };
  /// By id; an empty one is left out, and so is one of more than kLongest bytes.
  explicit TokenTree(std::vector<std::string> tokens);
  /// What each token adds to a text behind other tokens; special tokens are left out.
  explicit TokenTree(const Tokenizer& tokenizer);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::string& bytes(uint32_t token) const { return tokens_[token]; }
  size_t size() const { return tokens_.size(); }
  /// Tokens of more than kAlikeBytes.
  const std::vector<uint32_t>& long_tokens() const { return long_; }

 private:
  static constexpr size_t kLongest = 1024;
  std::vector<std::string> tokens_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> long_;
};

/// A bit for each token: token t's is bit t % 32 of word t / 32.
using TokenMask = std::vector<uint32_t>;

/// A grammar over a vocabulary. Masks are kept by what they depend on: what a string may go on with
/// is found once, wherever in a document strings stand. Not thread-safe.
class TokenMasks {
 public:
  /// vocabulary: tokens of the model; bits of those beyond the tree's are 0.
  TokenMasks(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenTree> tree,
             uint32_t vocabulary);

  /// A text that grows by tokens. Belongs to the masks that began it.
  class Position {
   public:
    /// What was read so far.
    const std::string& text() const { return text_; }

   private:
    friend class TokenMasks;
    Matcher::State state_ = 0;
    uint64_t age_ = 0;  // of the matcher's states
    std::string text_;
  };
  Position begin();
  /// False, and nothing changes, where the grammar does not allow it.
  bool push(Position& position, uint32_t token);
  bool accepts(Position& position);
  /// The tokens that may follow, but for those that end a text. Holds until the next call. Throws
  /// ModelError where the grammar takes too long: who else is served must not wait for it.
  const TokenMask& allowed(Position& position);

 private:
  /// What may follow in a set of the automaton's states whatever is open around it, and where the
  /// rest depends on that.
  struct LocalMask {
    TokenMask mask;
    uint32_t depth = 0;           // rules opened, at most
    std::vector<uint32_t> exits;  // nodes at which the set's rule may end
  };
  // Rules open in one another that a mask may lead to.
  static constexpr uint32_t kMostDepth = 500;
  static constexpr size_t kKeptBytes = size_t{48} << 20;

  Matcher::State state_of(Position& position);
  /// Calls found(number, state) for every node below `first` up to `end` whose bytes may follow, of
  /// which `first` is the first byte; the state before it is `from`.
  template <typename Found>
  void walk(Matcher::State from, uint32_t first, uint32_t end, Found&& found);
  /// The mask of a state, which others share that read the same for kAlikeBytes bytes: longer
  /// tokens are then left out.
  const TokenMask& mask_of(Matcher::State state);
  void add_level(const Matcher::Level& level, TokenMask& mask);
  void allow(TokenMask& mask, uint32_t token) const {
    if (token < vocabulary_) mask[token / 32] |= 1u << (token % 32);
  }
  const LocalMask& local(uint32_t set);
  void make_room();

  /// Of the matcher, and nodes of the tree, for each mask: what is left over is saved up, to
  /// Matcher::kMostWork. Most masks take none, and the first ones most.
  static constexpr uint64_t kWorkOfMask = 1'000'000;

  Matcher matcher_;
  uint64_t allowance_ = Matcher::kMostWork;
  std::shared_ptr<const TokenTree> tree_;
  uint32_t vocabulary_;
  uint64_t age_ = 0;
  std::unordered_map<uint32_t, LocalMask> local_;  // by set
  std::unordered_map<uint64_t, TokenMask> masks_;  // by state
  std::vector<Matcher::State> path_;               // of walk(), by depth
};

}  // namespace mulciber
