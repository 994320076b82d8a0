// Bodies of the server's requests, and what models may write where tools' calls are looked for.
#include "apps/serve/completion_request.h"
#include "apps/serve/tool_calls.h"
#include "tests/fuzz/fuzz.h"

using namespace mulciber;
using namespace mulciber::apps::serve;

namespace {

/// A refusal is a 400 that says why; whatever else is thrown is a finding.
template <class Read>
void answers(const Read& read) {
  try {
    read();
  } catch (const ApiError& error) {
    if (error.status() != 400 || std::string_view(error.what()).empty()) std::abort();
    if (error.json().empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view body = fuzz::text(bytes, size);
  answers([&] { tool_names(parse_chat_request(body).tools_json); });
  answers([&] { parse_completion_request(body); });
  // An answer comes in pieces, and where it is cut changes nothing.
  std::string whole, cut;
  std::size_t calls = 0;
  for (const std::size_t piece : {size + 1, std::size_t{3}}) {
    ToolCallReader reader({"f"});
    std::string& shown = piece > size ? whole : cut;
    for (std::size_t at = 0; at < size; at += piece)
      shown += reader.push(std::string(body.substr(at, piece)));
    shown += reader.finish();
    if (piece > size)
      calls = reader.calls().size();
    else if (calls != reader.calls().size())
      std::abort();
  }
  return 0;
}
