// The paths of a checkout, in one file: all other files compile to the same objects in every
// checkout, so a compiler cache serves them.
#include "tests/support.h"

namespace mulciber::tests {

std::filesystem::path source_dir() { return SOURCE_FOLDER; }
std::filesystem::path data_dir() { return source_dir() / "tests/data"; }
std::filesystem::path command_file() { return COMMAND_FILE; }

}  // namespace mulciber::tests
