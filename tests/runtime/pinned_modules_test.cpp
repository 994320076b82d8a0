// shaders/pinned: the archive holds the modules that its manifest lists, and a build embeds the
// rows it needs from it. tests/cli/pinned_shaders.sh checks whether the sources have changed since.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/hash.h"
#include "runtime/kernel.h"
#include "runtime/module_archive.h"
#include "runtime/spirv_modules.h"
#include "runtime/spirv_reflection.h"
#include "tests/catch.h"
#include "tests/support.h"

using namespace mulciber;

namespace {

struct Manifest {
  std::string glslang;
  std::vector<uint32_t> word_counts;
  std::vector<std::string> rows, hashes;  // entries of each module, in order
};

Manifest read_manifest() {
  Manifest manifest;
  std::ifstream file(tests::source_dir() / "shaders/pinned/manifest.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name, sources, hash;
    uint32_t count = 0;
    words >> kind >> name;
    if (kind == "glslang") manifest.glslang = name;
    if (kind != "module" || !(words >> count >> sources >> hash)) continue;
    manifest.rows.push_back(name);
    manifest.word_counts.push_back(count);
    manifest.hashes.push_back(hash);
  }
  return manifest;
}

std::vector<unsigned char> read_archive() {
  std::ifstream file(tests::source_dir() / "shaders/pinned/modules.zst", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string hash_of(std::span<const uint32_t> words) {
  Fnv1a hash;
  for (uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) hash.add(static_cast<uint8_t>(word >> shift));
  }
  return fmt::format("{:016x}", hash.value());
}

}  // namespace

TEST_CASE("The pinned archive holds a module for every row, as its manifest says") {
  const Manifest manifest = read_manifest();
  REQUIRE(manifest.rows.size() == kernels().size());
  const ModuleArchive archive(manifest.word_counts, read_archive());
  for (size_t i = 0; i < manifest.rows.size(); ++i) {
    INFO(manifest.rows[i]);
    const Kernel* row = find_kernel(manifest.rows[i]);
    REQUIRE(row != nullptr);
    CHECK(hash_of(archive[i]) == manifest.hashes[i]);
    // The pinned module replaces the one that this build compiled for the row.
    const Reflection pinned = reflect_spirv(row->id, archive[i]);
    CHECK(pinned.buffer_count > 0);
    if (row->spirv.empty()) continue;
    CHECK(pinned.buffer_count == row->reflection.buffer_count);
    CHECK(pinned.push_constant_bytes == row->reflection.push_constant_bytes);
    CHECK(pinned.shared_memory_bytes == row->reflection.shared_memory_bytes);
    CHECK(pinned.buffer_address == row->reflection.buffer_address);
    if (row->pinned) CHECK(std::ranges::equal(row->spirv, archive[i]));
  }
}

TEST_CASE("The build says which of its modules are pinned") {
  size_t pinned = 0;
  for (const Kernel& row : kernels()) pinned += row.pinned;
  const std::string said = describe_shader_compilers();
  INFO(said);
  if (pinned == 0) {
    CHECK(said == local_glslang());
  } else if (pinned == kernels().size()) {
    CHECK(said == read_manifest().glslang + " (pinned)");
  } else {
    CHECK(said == fmt::format("{}, and {} (pinned) for {} of {} rows", local_glslang(),
                              read_manifest().glslang, pinned, kernels().size()));
  }
}

TEST_CASE("An archive that is not the manifest's is refused") {
  const Manifest manifest = read_manifest();
  std::vector<unsigned char> stream = read_archive();
  REQUIRE(stream.size() > 100);
  std::vector<uint32_t> counts = manifest.word_counts;
  ++counts.front();
  CHECK_THROWS_WITH(ModuleArchive(counts, stream),
                    Catch::Matchers::ContainsSubstring("is damaged"));
  stream.resize(stream.size() - 100);
  CHECK_THROWS_WITH(ModuleArchive(manifest.word_counts, stream),
                    Catch::Matchers::ContainsSubstring("is damaged"));
}
