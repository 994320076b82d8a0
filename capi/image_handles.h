// The objects behind the handles of models of images.
#pragma once

#include <vector>

#include "mulciber/c/image_classifier.h"
#include "mulciber/c/image_encoder.h"
#include "mulciber/c/image_text_matcher.h"
#include "mulciber/c/image_text_reader.h"
#include "mulciber/image_encoder.h"
#include "mulciber/image_text_reader.h"

struct MulciberImageEncoder {
  mulciber::ImageEncoder encoder;
};
struct MulciberImageClassifier {
  mulciber::ImageClassifier classifier;
  std::vector<const char*> labels = {};  // those of the classifier

  explicit MulciberImageClassifier(mulciber::ImageClassifier made) : classifier(std::move(made)) {
    for (const std::string& label : classifier.labels()) labels.push_back(label.c_str());
  }
};
struct MulciberImageTextMatcher {
  mulciber::ImageTextMatcher matcher;
};
struct MulciberImageTextReader {
  mulciber::ImageTextReader reader;
};
