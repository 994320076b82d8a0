// Statistics of a run of `mulciber translate`, for --stats.
#pragma once

#include <nlohmann/json.hpp>

#include "mulciber/device.h"
#include "mulciber/translator.h"

namespace mulciber::apps {

/// Sums over the chunks of a run.
struct Totals {
  TranslateStatistics sum;
  void add(const TranslateStatistics& s);
};

/// Prints statistics on standard error.
void print_statistics(const TranslateStatistics& s, const Device& device);
nlohmann::json statistics_json(const TranslateStatistics& s, const Device& device);

}  // namespace mulciber::apps
