#include "apps/translate/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "apps/cli/language_model.h"
#include "apps/cli/standard_error.h"

namespace mulciber::apps {

void Totals::add(const TranslateStatistics& s) {
  if (sum.texts == 0)
    sum = TranslateStatistics{s};
  else {
    sum.texts += s.texts;
    sum.batches += s.batches;
    sum.source_tokens += s.source_tokens;
    sum.target_tokens += s.target_tokens;
    sum.decoder_steps += s.decoder_steps;
    sum.row_steps += s.row_steps;
    sum.needed_row_steps += s.needed_row_steps;
    sum.refills += s.refills;
    sum.tokenize_seconds += s.tokenize_seconds;
    sum.prepare_seconds += s.prepare_seconds;
    sum.encode_seconds += s.encode_seconds;
    sum.decode_seconds += s.decode_seconds;
    sum.attention_seconds += s.attention_seconds;
    sum.total_seconds += s.total_seconds;
    sum.peak_device_bytes = std::max(sum.peak_device_bytes, s.peak_device_bytes);
  }
}

void print_statistics(const TranslateStatistics& s, const Device& device) {
  const DeviceDescription d = describe(device);
  tell("device            {}{}\n", d.name, d.software ? " (software)" : "");
  tell("time to load      {:.3f} s\n", s.load_seconds);
  tell("time to 1st token {:.3f} s\n", s.first_token_seconds);
  tell("encode            {:.1f} tokens/s ({} tokens, {:.3f} s)\n",
       per_second(s.source_tokens, s.encode_seconds), s.source_tokens, s.encode_seconds);
  tell("decode            {:.1f} tokens/s ({} tokens, {} steps, {:.3f} s)\n",
       per_second(s.target_tokens, s.decode_seconds), s.target_tokens, s.decoder_steps,
       s.decode_seconds);
  tell("row steps         {} computed, {} needed, {} refills\n", s.row_steps, s.needed_row_steps,
       s.refills);
  tell(
      "all               {:.1f} tokens/s, {:.1f} sentences/s ({} sentences, {} batches, "
      "{:.3f} s)\n",
      per_second(s.target_tokens, s.total_seconds), per_second(s.texts, s.total_seconds), s.texts,
      s.batches, s.total_seconds);
  tell("device memory     {:.1f} MiB at most ({:.1f} MiB predicted, {:.1f} MiB weights)\n",
       mebibytes(s.peak_device_bytes), mebibytes(s.predicted_device_bytes),
       mebibytes(s.weight_bytes));
}

nlohmann::json statistics_json(const TranslateStatistics& s, const Device& device) {
  return {{"device", describe(device).name},
          {"load_seconds", s.load_seconds},
          {"first_token_seconds", s.first_token_seconds},
          {"sentences", s.texts},
          {"batches", s.batches},
          {"source_tokens", s.source_tokens},
          {"target_tokens", s.target_tokens},
          {"steps", s.decoder_steps},
          {"row_steps", s.row_steps},
          {"needed_row_steps", s.needed_row_steps},
          {"refills", s.refills},
          {"tokenize_seconds", s.tokenize_seconds},
          {"prepare_seconds", s.prepare_seconds},
          {"encode_seconds", s.encode_seconds},
          {"decode_seconds", s.decode_seconds},
          {"attention_seconds", s.attention_seconds},
          {"total_seconds", s.total_seconds},
          {"weight_bytes", s.weight_bytes},
          {"predicted_device_bytes", s.predicted_device_bytes},
          {"peak_device_bytes", s.peak_device_bytes}};
}

}  // namespace mulciber::apps
