// Responses that later requests may follow (previous_response_id), in memory.
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace mulciber::apps::serve {

struct StoredResponse {
  std::string object;    // JSON that was sent
  std::string messages;  // the conversation up to its end: a JSON list in the form of chats
};

/// Bounded by count and bytes; the least recently used response goes first. A response that alone
/// is larger than the bytes is not kept. Thread-safe.
class ResponseStore {
 public:
  ResponseStore(size_t most, size_t most_bytes) : most_(most), most_bytes_(most_bytes) {}

  void put(const std::string& id, StoredResponse response);
  std::optional<StoredResponse> find(const std::string& id);
  /// Returns false where there is no such response.
  bool erase(const std::string& id);
  size_t size() const;

 private:
  struct Entry {
    std::string id;
    StoredResponse response;
    size_t bytes() const { return id.size() + response.object.size() + response.messages.size(); }
  };
  using Entries = std::list<Entry>;
  void drop(Entries::iterator entry);

  mutable std::mutex mutex_;
  const size_t most_, most_bytes_;
  size_t bytes_ = 0;
  Entries entries_;  // the latest first
  std::map<std::string, Entries::iterator> by_id_;
};

}  // namespace mulciber::apps::serve
