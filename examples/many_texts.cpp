// Continues the lines of standard input with one model, several at a time: a line that ends frees a
// slot for the next. Prints each line with its continuation as it ends.
//   many_texts MODEL [TEXTS_AT_ONCE] < LINES
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "mulciber/mulciber.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "many_texts MODEL [TEXTS_AT_ONCE] < LINES\n";
    return 2;
  }
  try {
    mulciber::BatchGeneratorOptions options;
    options.generator.sequences = argc > 2 ? static_cast<uint32_t>(std::stoul(argv[2])) : 4;
    mulciber::BatchGenerator batch(mulciber::open_device(mulciber::options_from_environment()),
                                   mulciber::open_model(argv[1]), options);
    for (std::string line; std::getline(std::cin, line);) {
      mulciber::BatchRequest request;
      request.prompt = line;
      request.max_new_tokens = 40;
      request.on_end = [line](const mulciber::Generation& answer, std::string_view) {
        std::cout << line << answer.text << "\n";
      };
      batch.submit(std::move(request));
    }
    while (batch.step()) {
      // An application may submit more texts between two steps, and cancel texts.
    }
    const mulciber::BatchGeneratorStatistics& counts = batch.statistics();
    std::fprintf(stderr, "%llu tokens in %llu steps\n",
                 static_cast<unsigned long long>(counts.new_tokens),
                 static_cast<unsigned long long>(counts.steps));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
  return 0;
}
