// Least-recently-used caches.
#pragma once

#include <algorithm>
#include <list>

namespace mulciber {

/// Finds the entry for which `is` returns true and moves it to the front of the list; nullptr:
/// none.
template <typename Entry, typename Is>
Entry* recently_used(std::list<Entry>& list, Is&& is) {
  const auto found = std::find_if(list.begin(), list.end(), is);
  if (found == list.end()) return nullptr;
  list.splice(list.begin(), list, found);
  return &list.front();
}

}  // namespace mulciber
