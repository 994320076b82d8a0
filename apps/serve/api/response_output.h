// The output of /v1/responses: a list of items, and the events of a stream about them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/serve/api/completion_format.h"

namespace mulciber::apps::serve {

class ResponseOutput {
 public:
  /// event: gets each event of the stream, with its type and its fields.
  using Event = std::function<void(const std::string& type, nlohmann::json about)>;
  explicit ResponseOutput(Event event) : event_(std::move(event)) {}

  /// Adds a part of the completion.
  void add(const CompletionPart& part);
  /// The items so far; after the last part, all of them.
  nlohmann::json items() const;
  /// The completion as a message of a chat.
  nlohmann::json message() const;

 private:
  struct Item {
    std::string id;
    bool is_call = false;
    std::string text;  // for messages
    std::vector<TokenRecord> tokens;
    CallPiece call;
    std::string status = "in_progress";
  };
  nlohmann::json json_of(const Item& item) const;
  nlohmann::json part_of(const Item& item) const;
  nlohmann::json place(const Item& item, bool in_content) const;
  void begin(Item item);
  void end(const std::string& status);
  void add_text(const CompletionPart& part);
  void add_call(const CallPiece& piece);

  Event event_;
  std::vector<Item> items_;
};

}  // namespace mulciber::apps::serve
