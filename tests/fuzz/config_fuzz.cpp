// config.json and generation_config.json: JSON, and the hyperparameters in it.
#include "checkpoints/json.h"

#include <nlohmann/json.hpp>
#include "models/families/encoder_decoder_family.h"
#include "tests/fuzz/fuzz.h"

using namespace mulciber;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::accepts([&] {
    const Json json = parse_json(fuzz::text(bytes, size), "config.json");
    const ConfigReader config(json, "config.json");
    for (const EncoderDecoderFamily* family : kEncoderDecoderFamilies)
      fuzz::accepts([&] { family->read(config, &config); });
    fuzz::accepts([&] { read_generation_config(config, &config, 1000); });
  });
  return 0;
}
