// Forms in which a checkpoint may hold a weight: transposed, less one, in several tensors with
// interleaved rows.
#include "models/adapters/weights_load.h"

#include <cstring>
#include <fstream>

#include "tests/catch.h"
#include "tests/device.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

/// A file of f32 tensors whose values are 0, 1, 2, ... across all of them.
class Fixture {
 public:
  Fixture() {
    const std::string header = R"({"a":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                               R"("b":{"dtype":"F32","shape":[3,2],"data_offsets":[24,48]},)"
                               R"("v":{"dtype":"F32","shape":[4],"data_offsets":[48,64]},)"
                               R"("n":{"dtype":"F32","shape":[1,1,4],"data_offsets":[64,80]},)"
                               R"("u":{"dtype":"F32","shape":[4],"data_offsets":[80,96]},)"
                               R"("c":{"dtype":"F32","shape":[2,2,2],"data_offsets":[96,128]}})";
    std::string file(8, '\0');
    const uint64_t length = header.size();
    std::memcpy(file.data(), &length, 8);
    file += header;
    for (int i = 0; i < 32; ++i) {
      const float value = static_cast<float>(i);
      file.append(reinterpret_cast<const char*>(&value), 4);
    }
    path_ = folder_.path() / "x.safetensors";
    std::ofstream(path_, std::ios::binary) << file;
  }

  std::vector<float> load(const WeightSpec& spec) {
    Device& device = shared_device();
    const Checkpoint checkpoint(path_);
    const Weights weights = weights_of(device, {spec}, checkpoint, "test", {});
    BufferView view = weights["w"].view;
    view.size = spec.shape.elements() * sizeof(float);
    return download_as<float>(device, view);
  }

 private:
  TemporaryFolder folder_;
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("a weight that the file holds transposed is turned at load") {
  const WeightSpec spec = {
      "w", WeightRole::kMatrix, {2, 3}, {{{"a"}, {2, 3}, SourceForm::kTransposed}}};
  CHECK(Fixture().load(spec) == std::vector<float>{0, 2, 4, 1, 3, 5});
}

TEST_CASE("a convolution is loaded tap by tap") {
  const WeightSpec spec = {
      "w", WeightRole::kMatrix, {1, 4}, {{{"n"}, {1, 1, 4}, SourceForm::kTapByTap}}};
  CHECK(Fixture().load(spec) == std::vector<float>{16, 17, 18, 19});
  const WeightSpec two = {
      "w", WeightRole::kMatrix, {2, 4}, {{{"c"}, {2, 2, 2}, SourceForm::kTapByTap}}};
  CHECK(Fixture().load(two) == std::vector<float>{24, 26, 25, 27, 28, 30, 29, 31});
}

TEST_CASE("a gain that the file holds less one gets it back") {
  const WeightSpec spec = {"w", WeightRole::kVector, {4}, {{{"v"}, {4}, SourceForm::kPlusOne}}};
  CHECK(Fixture().load(spec) == std::vector<float>{13, 14, 15, 16});
}

TEST_CASE("zeros stand where the file holds nothing") {
  const WeightSpec spec = {
      "w", WeightRole::kVector, {2, 4}, {{{"v"}, {4}}, {{}, {4}, SourceForm::kZeros}}};
  CHECK(Fixture().load(spec) == std::vector<float>{12, 13, 14, 15, 0, 0, 0, 0});
}

TEST_CASE("rows of two matrices take turns") {
  WeightSpec spec = {"w", WeightRole::kMatrix, {6, 2}, {{{"a"}, {3, 2}}, {{"b"}, {3, 2}}}, 2};
  CHECK(Fixture().load(spec) == std::vector<float>{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11});
}

TEST_CASE("rows of several pairs of matrices take turns, pair below pair") {
  const WeightSource a0 = {{"a"}, {1, 2}, SourceForm::kAsInFile, 3, 0},
                     a1 = {{"a"}, {1, 2}, SourceForm::kAsInFile, 3, 1}, b = {{"b"}, {3, 2}};
  const WeightSpec spec = {"w", WeightRole::kExperts, {2, 4, 2}, {a0, a1, b, b}, 2};
  CHECK(Fixture().load(spec) ==
        std::vector<float>{0, 1, 2, 3, 6, 7, 6, 7, 8, 9, 8, 9, 10, 11, 10, 11});
}

TEST_CASE("elements of two vectors take turns") {
  const WeightSpec spec = {"w", WeightRole::kVector, {8}, {{{"v"}, {4}}, {{"u"}, {4}}}, 2};
  CHECK(Fixture().load(spec) == std::vector<float>{12, 20, 13, 21, 14, 22, 15, 23});
}

TEST_CASE("rows of a taller matrix are a weight") {
  const WeightSource last = {{"a"}, {2, 2}, SourceForm::kAsInFile, 3, 1},
                     first = {{"a"}, {1, 2}, SourceForm::kAsInFile, 3, 0},
                     end = {{"v"}, {2}, SourceForm::kAsInFile, 4, 2};
  CHECK(Fixture().load({"w", WeightRole::kMatrix, {3, 2}, {last, first}}) ==
        std::vector<float>{2, 3, 4, 5, 0, 1});
  CHECK(Fixture().load({"w", WeightRole::kVector, {2}, {end}}) == std::vector<float>{14, 15});
  const WeightSource other = {{"a"}, {2, 2}, SourceForm::kAsInFile, 4, 1};
  CHECK_THROWS_WITH(Fixture().load({"w", WeightRole::kMatrix, {2, 2}, {other}}),
                    Catch::Matchers::ContainsSubstring("has shape [3, 2], config says (4, 2)"));
}

TEST_CASE("a transposed weight of another shape is refused with the shape of the file") {
  const WeightSpec spec = {
      "w", WeightRole::kMatrix, {3, 2}, {{{"a"}, {3, 2}, SourceForm::kTransposed}}};
  CHECK_THROWS_WITH(Fixture().load(spec),
                    Catch::Matchers::ContainsSubstring("has shape [3, 2], config says (2, 3)"));
}

TEST_CASE("a tensor of another rank is refused, whatever its elements") {
  const WeightSpec spec = {"w", WeightRole::kVector, {4}, {{{"n"}, {4}}}};
  CHECK_THROWS_WITH(Fixture().load(spec),
                    Catch::Matchers::ContainsSubstring("test weight `n`") &&
                        Catch::Matchers::ContainsSubstring("has shape [1, 1, 4], config says (4)"));
  // A family whose files have such a tensor says so in its table.
  const WeightSpec known = {"w", WeightRole::kVector, {4}, {{{"n"}, {1, 1, 4}}}};
  CHECK(Fixture().load(known) == std::vector<float>{16, 17, 18, 19});
}
