#include "apps/serve/api/response_store.h"

#include <iterator>
#include <utility>

namespace mulciber::apps::serve {

void ResponseStore::put(const std::string& id, StoredResponse response) {
  Entry entry = {id, std::move(response)};
  if (entry.bytes() > most_bytes_) return;  // all others would be dropped in vain
  const std::lock_guard lock(mutex_);
  entries_.push_front(std::move(entry));
  by_id_[id] = entries_.begin();
  bytes_ += entries_.front().bytes();
  while (!entries_.empty() && (entries_.size() > most_ || bytes_ > most_bytes_))
    drop(std::prev(entries_.end()));
}

std::optional<StoredResponse> ResponseStore::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->response;
}

bool ResponseStore::erase(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  drop(found->second);
  return true;
}

size_t ResponseStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void ResponseStore::drop(Entries::iterator entry) {
  bytes_ -= entry->bytes();
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

}  // namespace mulciber::apps::serve
