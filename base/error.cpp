#include "mulciber/error.h"

namespace mulciber {
namespace {

std::string join(const std::string& where, const std::string& problem, const std::string& remedy) {
  std::string text = where.empty() ? problem : where + ": " + problem;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

}  // namespace

Error::Error(std::string where, std::string problem, std::string remedy)
    : std::runtime_error(join(where, problem, remedy)),
      where_(std::move(where)),
      problem_(std::move(problem)),
      remedy_(std::move(remedy)) {}

DeviceError::DeviceError(Kind kind, std::string where, std::string problem, std::string remedy)
    : Error(std::move(where), std::move(problem), std::move(remedy)), kind_(kind) {}

}  // namespace mulciber
