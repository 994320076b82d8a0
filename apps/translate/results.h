// The results of a translation: its attention maps, and its line of JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/attention/page.h"
#include "mulciber/translator.h"

namespace mulciber::apps {

/// t.attention must be there. model: the path; start_token: the first token that the decoder reads.
SentenceMaps to_maps(const std::string& source, const Translation& t, const std::string& model,
                     const std::string& device, const std::string& start_token);

/// The JSON has every hypothesis with its score, ids and tokens.
nlohmann::json translation_json(const std::string& source, const Translation& t);

}  // namespace mulciber::apps
