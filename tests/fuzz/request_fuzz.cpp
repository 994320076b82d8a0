// Bodies of the server's requests, and answers of models in which tool calls are looked for.
#include <algorithm>

#include "apps/serve/api/requests/completion_request.h"
#include "apps/serve/api/tool_calls.h"
#include "tests/fuzz/fuzz.h"

using namespace mulciber;
using namespace mulciber::apps::serve;

namespace {

/// A refusal is a 400 with a reason; any other exception is a finding.
template <class Read>
void answers(const Read& read) {
  try {
    read();
  } catch (const ApiError& error) {
    if (error.status() != 400 || std::string_view(error.what()).empty()) std::abort();
    if (error.json().empty()) std::abort();
  }
}

/// The number of calls in an answer that comes in pieces of so many bytes.
std::size_t calls_of(std::string_view answer, std::size_t piece) {
  ToolCallReader reader({{"f", nullptr}});
  std::size_t count = 0;
  const auto look = [&] {
    for (const CallPiece& part : reader.take()) count = std::max(count, part.index + 1);
  };
  for (std::size_t at = 0; at < answer.size(); at += piece) {
    reader.push(std::string(answer.substr(at, piece)));
    look();
  }
  reader.finish();
  look();
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view body = fuzz::text(bytes, size);
  answers([&] { tool_schemas(parse_chat_request(body).tools_json); });
  answers([&] { parse_completion_request(body); });
  // An answer comes in pieces, and the cuts change nothing.
  if (calls_of(body, size + 1) != calls_of(body, 3)) std::abort();
  return 0;
}
