// Reads and writes text line by line.
#pragma once

#include <cstdio>
#include <istream>
#include <string>
#include <utility>

#include "mulciber/error.h"

namespace mulciber::apps {

/// Reads the lines of an input, one at a time; the last may lack its line feed.
class LineReader {
 public:
  explicit LineReader(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {}
  bool next(std::string& line) {
    if (!std::getline(in_, line)) {
      if (in_.bad()) throw ModelError(name_, "could not be read", "");
      return false;
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  }

 private:
  std::istream& in_;
  std::string name_;
};

/// Writes results to standard output, or to a file line by line, so that results before an error
/// are kept.
class Output {
 public:
  explicit Output(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_ = std::fopen(path.c_str(), "wb");
    if (!file_)
      throw ModelError(path, "cannot be written to", "choose a folder that can be written to");
  }
  ~Output() {
    if (file_) std::fclose(file_);
  }
  void line(const std::string& text) {
    std::FILE* out = file_ ? file_ : stdout;
    if (std::fwrite(text.data(), 1, text.size(), out) != text.size() ||
        std::fputc('\n', out) == EOF)
      fail();
  }
  void flush() {
    if (std::fflush(file_ ? file_ : stdout) != 0) fail();
  }

 private:
  [[noreturn]] void fail() {
    throw ModelError(path_.empty() ? "standard output" : path_, "could not be written to the end",
                     "what was written before stands; is the disk full?");
  }
  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace mulciber::apps
