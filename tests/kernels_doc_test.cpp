#include <fstream>
#include <iterator>

#include "runtime/kernel.h"
#include "tests/catch.h"
#include "tests/support.h"

TEST_CASE("docs/kernels.md is the table of this build") {
  std::ifstream in(mulciber::tests::source_dir() / "docs/kernels.md");
  const std::string document{std::istreambuf_iterator<char>(in), {}};
  INFO("run: mulciber devices --kernels > docs/kernels.md");
  CHECK((document == mulciber::kernel_table_markdown()));
}
