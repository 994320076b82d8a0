// Masks of the vocabulary's tokens that a grammar allows next.
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

/// The tokens of a vocabulary as a prefix tree of their bytes.
class TokenTree {
 public:
  static constexpr uint32_t kNoToken = UINT32_MAX;
  struct Node {
    uint32_t end;    // number of the node after the subtree
    uint32_t token;  // kNoToken: no token ends here
    uint16_t depth;  // bytes including its own
    uint8_t byte;
  };
  /// tokens: by id. Empty tokens and those of more than kLongest bytes are left out.
  explicit TokenTree(std::vector<std::string> tokens);
  /// Uses the bytes that each token adds after other tokens; special tokens are left out.
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

/// One bit per token: token t has bit t % 32 of word t / 32.
using TokenMask = std::vector<uint32_t>;

/// A grammar over a vocabulary. Masks are cached by the part of the state that they depend on: the
/// tokens that may continue a string are found once for all strings of a document. Not thread-safe.
class TokenMasks {
 public:
  /// vocabulary: number of tokens in the model; tokens beyond the tree's have 0 bits.
  TokenMasks(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenTree> tree,
             uint32_t vocabulary);

  /// A text that grows by tokens. It belongs to the TokenMasks that began it.
  class Position {
   public:
    /// The text read so far.
    const std::string& text() const { return text_; }

   private:
    friend class TokenMasks;
    Matcher::State state_ = 0;
    uint64_t age_ = 0;  // age of the matcher's states
    std::string text_;
  };
  Position begin();
  /// Appends a token; returns false, without a change, where the grammar does not allow it.
  bool push(Position& position, uint32_t token);
  bool accepts(Position& position);
  /// The tokens that may follow, without those that end a text. Valid until the next call. Throws
  /// ModelError where the grammar takes too long, because other requests must not wait for it.
  const TokenMask& allowed(Position& position);

 private:
  /// The tokens that a set of automaton states allows whatever rules are open around it, and the
  /// places where the rest depends on these rules.
  struct LocalMask {
    TokenMask mask;
    uint32_t depth = 0;           // most rules that are opened
    std::vector<uint32_t> exits;  // nodes at which the set's rule may end
  };
  // Depth of open rules up to which masks are computed.
  static constexpr uint32_t kMostDepth = 500;
  static constexpr size_t kKeptBytes = size_t{48} << 20;

  Matcher::State state_of(Position& position);
  /// Calls found(number, state) for every node in [first, end) whose bytes may follow; `first` has
  /// the first byte, and `from` is the state before it.
  template <typename Found>
  void walk(Matcher::State from, uint32_t first, uint32_t end, Found&& found);
  /// The mask of a state. States with equal continuations for kAlikeBytes bytes share it; longer
  /// tokens are then left out.
  const TokenMask& mask_of(Matcher::State state);
  void add_level(const Matcher::Level& level, TokenMask& mask);
  void allow(TokenMask& mask, uint32_t token) const {
    if (token < vocabulary_) mask[token / 32] |= 1u << (token % 32);
  }
  const LocalMask& local(uint32_t set);
  void make_room();

  /// Work for each mask, in steps of the matcher and nodes of the tree. Unused work is saved up to
  /// Matcher::kMostWork: most masks take none, and the first ones most.
  static constexpr uint64_t kWorkOfMask = 1'000'000;

  Matcher matcher_;
  uint64_t allowance_ = Matcher::kMostWork;
  std::shared_ptr<const TokenTree> tree_;
  uint32_t vocabulary_;
  uint64_t age_ = 0;
  std::unordered_map<uint32_t, LocalMask> local_;  // by set
  std::unordered_map<uint64_t, TokenMask> masks_;  // by state
  std::vector<Matcher::State> path_;               // for walk(), by depth
};

}  // namespace mulciber
