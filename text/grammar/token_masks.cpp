#include "text/grammar/token_masks.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace mulciber {

TokenTree::TokenTree(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  std::vector<uint32_t> order;
  for (uint32_t id = 0; id < tokens_.size(); ++id) {
    if (tokens_[id].size() > kLongest) tokens_[id].clear();
    if (!tokens_[id].empty()) order.push_back(id);
    if (tokens_[id].size() > kAlikeBytes) long_.push_back(id);
  }
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return tokens_[a] < tokens_[b]; });
  std::vector<uint32_t> open;  // nodes of the current path, from the first byte on
  const auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      nodes_[open.back()].end = static_cast<uint32_t>(nodes_.size());
  };
  std::string_view before;
  for (const uint32_t id : order) {
    const std::string_view token = tokens_[id];
    const auto common = static_cast<size_t>(
        std::mismatch(before.begin(), before.end(), token.begin(), token.end()).first -
        before.begin());
    // The second of two tokens with equal bytes has a node of its own beside the first's.
    close(std::min(common, token.size() - 1));
    while (open.size() < token.size()) {
      const size_t depth = open.size() + 1;
      open.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, depth == token.size() ? id : kNoToken, static_cast<uint16_t>(depth),
                        static_cast<uint8_t>(token[depth - 1])});
    }
    before = token;
  }
  close(0);
}

TokenMasks::TokenMasks(std::shared_ptr<const Automaton> automaton,
                       std::shared_ptr<const TokenTree> tree, uint32_t vocabulary)
    : matcher_(std::move(automaton)), tree_(std::move(tree)), vocabulary_(vocabulary) {}

TokenMasks::Position TokenMasks::begin() {
  Position position;
  position.state_ = matcher_.start();
  position.age_ = age_;
  return position;
}

void TokenMasks::make_room() {
  const size_t masks = (masks_.size() + local_.size()) * (vocabulary_ / 8 + 64);
  if (masks > kKeptBytes) {
    masks_.clear();
    local_.clear();
  }
  if (matcher_.bytes() < Matcher::kMostBytes / 2) return;
  masks_.clear();
  local_.clear();
  matcher_.clear();
  ++age_;
}

Matcher::State TokenMasks::state_of(Position& position) {
  if (position.age_ != age_) {
    position.state_ = matcher_.start();
    position.age_ = age_;
    for (const char c : position.text_)
      position.state_ = matcher_.next(position.state_, static_cast<uint8_t>(c));
  }
  return position.state_;
}

bool TokenMasks::push(Position& position, uint32_t token) {
  if (token >= tree_->size() || tree_->bytes(token).empty()) return false;
  Matcher::State state = state_of(position);
  for (const char c : tree_->bytes(token)) {
    state = matcher_.next(state, static_cast<uint8_t>(c));
    if (state == Matcher::kDead) return false;
  }
  position.text_ += tree_->bytes(token);
  position.state_ = state;
  return true;
}

bool TokenMasks::accepts(Position& position) { return matcher_.accepts(state_of(position)); }

template <typename Found>
void TokenMasks::walk(Matcher::State from, uint32_t first, uint32_t end, Found&& found) {
  if (first >= end) return;
  const std::vector<TokenTree::Node>& nodes = tree_->nodes();
  const size_t origin = nodes[first].depth;
  path_.assign(1, from);
  for (uint32_t number = first; number < end;) {
    const TokenTree::Node& node = nodes[number];
    matcher_.count(1);
    const size_t level = node.depth - origin;
    const Matcher::State state = matcher_.next(path_[level], node.byte);
    if (state == Matcher::kDead || !found(number, state)) {
      number = node.end;
      continue;
    }
    path_.resize(level + 1);
    path_.push_back(state);
    ++number;
  }
}

const TokenMasks::LocalMask& TokenMasks::local(uint32_t set) {
  const auto known = local_.find(set);
  if (known != local_.end()) return known->second;
  LocalMask made;
  made.mask.resize((vocabulary_ + 31) / 32);
  const auto& nodes = tree_->nodes();
  uint32_t exit_end = 0;  // nodes below a noted exit need no other exit
  Matcher::State last = Matcher::kDead;
  walk(matcher_.alone(set), 0, static_cast<uint32_t>(nodes.size()),
       [&](uint32_t number, Matcher::State state) {
         if (state != last) made.depth = std::max(made.depth, matcher_.depth(state));
         last = state;
         if (nodes[number].token != TokenTree::kNoToken) allow(made.mask, nodes[number].token);
         if (matcher_.accepts(state) && number >= exit_end) {
           exit_end = nodes[number].end;
           if (exit_end > number + 1) made.exits.push_back(number);
         }
         return true;
       });
  return local_.emplace(set, std::move(made)).first->second;
}

void TokenMasks::add_level(const Matcher::Level& level, TokenMask& mask) {
  const auto& nodes = tree_->nodes();
  const Matcher::State own = matcher_.with(level);
  const uint32_t depth = matcher_.depth(own);
  const auto take = [&](uint32_t number, Matcher::State state) {
    if (matcher_.depth(state) > std::max(kMostDepth, depth)) return false;
    if (nodes[number].token != TokenTree::kNoToken) allow(mask, nodes[number].token);
    return true;
  };
  const LocalMask& found = local(level.set);
  if (depth + found.depth > kMostDepth) {
    walk(own, 0, static_cast<uint32_t>(nodes.size()), take);
    return;
  }
  for (size_t i = 0; i < mask.size(); ++i) mask[i] |= found.mask[i];
  for (const uint32_t exit : found.exits) {
    // Any token below the exit begins with the exit's bytes.
    uint32_t below = exit + 1;
    while (nodes[below].token == TokenTree::kNoToken) ++below;
    const std::string& bytes = tree_->bytes(nodes[below].token);
    Matcher::State state = own;
    for (size_t i = 0; i < nodes[exit].depth; ++i)
      state = matcher_.next(state, static_cast<uint8_t>(bytes[i]));
    walk(state, exit + 1, nodes[exit].end, take);
  }
}

const TokenMask& TokenMasks::mask_of(Matcher::State state) {
  const Matcher::State shared = matcher_.alike(state);
  const bool is_cut = shared != state && !tree_->long_tokens().empty();
  const uint64_t name = uint64_t{shared} << 1 | (is_cut ? 1 : 0);
  const auto known = masks_.find(name);
  if (known != masks_.end()) return known->second;
  TokenMask mask((vocabulary_ + 31) / 32);
  for (const Matcher::Level& level : matcher_.levels(shared)) add_level(level, mask);
  for (const uint32_t token : tree_->long_tokens())
    if (is_cut && token < vocabulary_) mask[token / 32] &= ~(1u << (token % 32));
  return masks_.emplace(name, std::move(mask)).first->second;
}

const TokenMask& TokenMasks::allowed(Position& position) {
  make_room();
  allowance_ = std::min(allowance_ + kWorkOfMask, Matcher::kMostWork);
  const uint64_t before = matcher_.work();
  matcher_.bound_work(before + allowance_);
  const TokenMask& mask = mask_of(state_of(position));
  allowance_ -= matcher_.work() - before;
  return mask;
}

}  // namespace mulciber
