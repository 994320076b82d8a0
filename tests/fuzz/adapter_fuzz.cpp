// LoRA adapters: a GGUF file; or adapter_config.json, a byte of 0 and adapter_model.safetensors.
#include "models/adapters/low_rank_adapter.h"
#include "tests/fuzz/fuzz.h"

using namespace mulciber;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view all = fuzz::text(bytes, size);
  const bool gguf = all.starts_with("GGUF");
  const auto file = [](const char* name, std::string_view part) {
    return LentFile{.name = name, .bytes = std::as_bytes(std::span(part)), .read = {}};
  };
  const std::size_t end = std::min(all.find('\0'), all.size());
  std::vector<LentFile> files = {file("a.gguf", all)};
  if (!gguf)
    files = {file("adapter_config.json", all.substr(0, end)),
             file("adapter_model.safetensors", all.substr(std::min(end + 1, all.size())))};
  fuzz::accepts([&] {
    const LowRankAdapter adapter(gguf ? "a.gguf" : "", ModelFiles(files));
    for (const LowRankUpdate& update : adapter.updates()) {
      if (update.rank == 0 || update.rank > adapter.rank()) std::abort();
      for (const LowRankFactor& factor : {update.down, update.up}) {
        const std::size_t size = adapter.values(*factor.tensor).size();
        if (size != update.experts * update.rank * factor.width) std::abort();
        if (size > 0 &&
            factor.index(update.experts - 1, update.rank - 1, factor.width - 1) != size - 1)
          std::abort();
      }
    }
  });
  return 0;
}
