// Catch2 under one name: version 3 where it is installed, version 2 (one header) elsewhere.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#else
#include <catch2/catch.hpp>
namespace Catch::Matchers {
// Version 3's name for what version 2 calls Contains.
inline auto ContainsSubstring(const std::string& part) { return Contains(part); }
}  // namespace Catch::Matchers
#endif

#include <string>

namespace mulciber::tests {

/// Marks the running test case as skipped; the summary names it with `reason`. Use MULCIBER_SKIP.
void skip(std::string reason);

}  // namespace mulciber::tests

/// Leaves the running test case and counts it as skipped, with the reason, instead of passed:
/// a missing capability or file must stay visible. (Catch2 version 2 has no SKIP.)
#define MULCIBER_SKIP(reason)      \
  do {                             \
    mulciber::tests::skip(reason); \
    return;                        \
  } while (false)
