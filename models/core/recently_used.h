// What is dear to make and kept for a while, in order of its last use.
#pragma once

#include <algorithm>
#include <list>

namespace mulciber {

/// The entry of a list for which `is` says so, moved to its front; nullptr where there is none.
template <typename Entry, typename Is>
Entry* recently_used(std::list<Entry>& list, Is&& is) {
  const auto found = std::find_if(list.begin(), list.end(), is);
  if (found == list.end()) return nullptr;
  list.splice(list.begin(), list, found);
  return &list.front();
}

}  // namespace mulciber
