// `mulciber answer`: finds the answer to a question in a passage.
#include <fmt/format.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "apps/cli/interrupt_watch.h"
#include "apps/cli/lines.h"
#include "apps/cli/text_lines.h"
#include "checkpoints/json.h"

namespace mulciber::apps {
namespace {

struct AnswerArguments : EncoderArguments {
  std::string question, passage;
  AnswerOptions answer;
};

int run_answer(const AnswerArguments& arguments) {
  const std::string passage = read_whole(arguments.passage);
  if (passage.find_first_not_of(" \t\r\n\v\f") == std::string::npos)
    throw ModelError(arguments.passage, "holds no words", "give a text that may hold the answer");
  if (arguments.question.find_first_not_of(" \t\r\n\v\f") == std::string::npos)
    throw ModelError("QUESTION", "is empty", "say what is asked");
  const std::shared_ptr<Device> device = open_device(arguments.common);
  PassageReader reader(device, arguments.model, arguments.load());
  std::atomic<bool> cancel{false};
  const InterruptWatch watch(cancel);
  AnswerOptions options = arguments.answer;
  options.batch.cancel = &cancel;
  const std::vector<PassageAnswer> answers = reader.answer(arguments.question, passage, options);
  Output output("");
  for (const PassageAnswer& answer : answers) {
    const bool none = answer.text.empty();
    if (arguments.common.json) {
      nlohmann::json object = {{"score", answer.score}, {"text", answer.text}};
      if (!none) object["begin"] = answer.begin, object["end"] = answer.end;
      output.line(json_line(object));
    } else {
      std::string text = none ? "(the passage does not say)" : answer.text;
      for (char& c : text)
        if (c == '\n' || c == '\r' || c == '\t') c = ' ';
      output.line(fmt::format("{:.4f}\t{}", answer.score, text));
    }
  }
  output.flush();
  report(arguments, reader.statistics(), 0);
  return finish(*device, arguments.common, cancel ? kInterrupted : kSuccess);
}

}  // namespace

void add_answer(Command& app, int& code) {
  const auto options = std::make_shared<AnswerArguments>();
  Command command = app.add_subcommand("answer", "Find the answer to a question in a passage");
  add_encoder_options(command, *options);
  command.add_option("QUESTION", options->question, "what is asked").required();
  command.add_option("--passage", options->passage, "text file that is read (- is standard input)")
      .required()
      .type_name("FILE");
  command.add_option("--best", options->answer.best, "answers to print").range(1, 1000);
  command.add_option("--longest", options->answer.longest_tokens, "most tokens of an answer")
      .range(1, 100000);
  command
      .add_option("--overlap", options->answer.overlap_tokens,
                  "tokens that the windows of a long passage share, at most half of one")
      .range(0, 100000);
  command.add_flag("--may-be-none", options->answer.may_be_none,
                   "that the passage does not say is an answer too");
  add_common_options(command, options->common);
  command.footer(
      "Prints an answer a line, the best first: the probability of its start and end, and the "
      "words "
      "of the\n"
      "passage. --json adds where they stand, in bytes.\n\n"
      "Example: mulciber answer -m models/bert-squad --passage report.txt \"Who signed it?\"");
  command.callback([options, &code] { code = run_answer(*options); });
}

}  // namespace mulciber::apps
