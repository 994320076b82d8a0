// The object behind the handle of a speech model.
#pragma once

#include <string>
#include <vector>

#include "mulciber/c/transcriber.h"
#include "mulciber/transcriber.h"

struct MulciberTranscriber {
  mulciber::Transcriber transcriber;
  std::vector<std::string> codes = {};
  std::vector<const char*> languages = {};  // of `codes`

  explicit MulciberTranscriber(mulciber::Transcriber made)
      : transcriber(std::move(made)), codes(transcriber.languages()) {
    for (const std::string& code : codes) languages.push_back(code.c_str());
  }
};
