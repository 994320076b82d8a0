// safetensors: the header checked against the file.
#include "checkpoints/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace mulciber;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile memory(bytes, size);
  fuzz::accepts([&] {
    const SafetensorsFile file(memory.path());
    for (const CheckpointTensor& tensor : file.tensors()) {
      if (file.find(tensor.name) != &tensor) std::abort();
      for (const std::byte byte : tensor.bytes)
        static_cast<void>(*static_cast<const volatile std::byte*>(&byte));
    }
  });
  return 0;
}
