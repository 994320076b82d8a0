// left_out PNG: what a library says that was built without MULCIBER_AUDIO, MULCIBER_IMAGES and
// MULCIBER_SELF_TEST. The exit code is the number of faults.
#include <mulciber/c/context.h>
#include <mulciber/mulciber.h>

#include <iostream>
#include <string>

namespace {

int faults = 0;

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::cout << "FAILED: " << what << '\n';
  ++faults;
}

template <typename Call>
void require_named(const char* option, const Call& call) {
  try {
    call();
    require(false, std::string(option) + ": the call went through");
  } catch (const mulciber::Error& error) {
    std::cout << error.what() << '\n';
    require(error.problem().find(option) != std::string::npos, std::string(option) + " is named");
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* part : {"audio", "images", "self-test"})
    require(mulciber_supports(part) == 0, std::string(part) + " is left out");
  require(mulciber_supports("mulciber_version") != 0, "functions are known");
  require_named("MULCIBER_IMAGES", [&] { mulciber::read_image(argc > 1 ? argv[1] : ""); });
  require_named("MULCIBER_SELF_TEST", [] { mulciber::self_test(); });
  return faults;
}
