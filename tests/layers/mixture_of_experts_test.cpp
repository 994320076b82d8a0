// The mixture-of-experts layer against its definition in double precision, switch and top-2, and
// its load report.
#include "layers/mixture_of_experts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "mulciber/error.h"
#include "runtime/op.h"
#include "tests/catch.h"
#include "tests/device_tensors.h"

using namespace mulciber;

namespace {

constexpr uint32_t kTokens = 10, kExperts = 5, kWidth = 12, kHidden = 20;

struct Parameter {
  Tensor tensor;
  std::vector<float> values;
};

class Parameters : public tests::DeviceTensors {
 public:
  Parameter random(Shape shape) {
    Parameter result{{}, std::vector<float>(shape.elements())};
    for (float& value : result.values) value = normal_(random_);
    result.tensor = put(shape, DataType::kF32, std::as_bytes(std::span(result.values)));
    return result;
  }

 private:
  std::mt19937 random_{3};
  std::normal_distribution<float> normal_{0, 0.6f};
};

double dot(const std::vector<float>& matrix, uint64_t row, const std::vector<double>& x) {
  double sum = 0;
  for (size_t k = 0; k < x.size(); ++k) sum += double{matrix[row * x.size() + k]} * x[k];
  return sum;
}

template <typename T>
std::vector<T> download(const Program& program, const Tensor& tensor) {
  BufferView view = program.view(tensor);
  view.size = tensor.bytes();
  return download_as<T>(tests::shared_device(), view);
}

}  // namespace

TEST_CASE("A mixture of experts adds up what the chosen experts give") {
  Parameters parameters;
  const Parameter x = parameters.random({2, kTokens / 2, kWidth}),
                  router = parameters.random({kExperts, kWidth}),
                  up = parameters.random({kExperts, kHidden, kWidth}),
                  up_bias = parameters.random({kExperts * kHidden}),
                  down = parameters.random({kExperts, kWidth, kHidden}),
                  down_bias = parameters.random({kExperts * kWidth});
  struct Kind {
    uint32_t experts_per_token;
    bool normalize;
  };
  for (const Kind& kind : {Kind{1, false}, Kind{2, true}, Kind{kExperts, true}}) {
    INFO(kind.experts_per_token << " experts per token");
    const MixtureOfExperts layer{.router = {router.tensor, {}},
                                 .rules = parameters.words(MixtureOfExperts::rules_words()),
                                 .up = up.tensor,
                                 .down = down.tensor,
                                 .up_bias = up_bias.tensor,
                                 .down_bias = down_bias.tensor,
                                 .activation = Activation::kRelu,
                                 .experts_per_token = kind.experts_per_token,
                                 .normalize = kind.normalize};
    ProgramBuilder builder(tests::shared_device(), "experts");
    MixtureOfExperts::Routing routing;
    const Tensor y = layer(builder, x.tensor, &routing);
    for (const Tensor& kept : {y, routing.logits, routing.routes}) builder.keep(kept);
    Program program = builder.build();
    program.run();
    REQUIRE(y.shape == x.tensor.shape);
    const std::vector<float> found = download<float>(program, y);

    std::vector<uint64_t> sent(kExperts);
    for (uint32_t token = 0; token < kTokens; ++token) {
      const std::vector<double> input(x.values.begin() + token * kWidth,
                                      x.values.begin() + (token + 1) * kWidth);
      std::vector<double> p(kExperts);
      for (uint32_t e = 0; e < kExperts; ++e) p[e] = std::exp(dot(router.values, e, input));
      const double total = std::accumulate(p.begin(), p.end(), 0.0);
      for (double& value : p) value /= total;
      std::vector<uint32_t> order(kExperts);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return p[a] > p[b]; });
      std::vector<double> expected(kWidth);
      double gates = 0;
      for (uint32_t slot = 0; slot < kind.experts_per_token; ++slot) {
        const uint32_t e = order[slot];
        ++sent[e];
        gates += p[e];
        std::vector<double> hidden(kHidden);
        for (uint32_t h = 0; h < kHidden; ++h) {
          hidden[h] = std::max(
              0.0, dot(up.values, e * kHidden + h, input) + up_bias.values[e * kHidden + h]);
        }
        for (uint32_t c = 0; c < kWidth; ++c)
          expected[c] +=
              p[e] * (dot(down.values, e * kWidth + c, hidden) + down_bias.values[e * kWidth + c]);
      }
      for (uint32_t c = 0; c < kWidth; ++c) {
        if (kind.normalize) expected[c] /= gates;
        INFO("token " << token << " column " << c);
        CHECK(std::abs(found[token * kWidth + c] - expected[c]) <
              1e-5 * std::max(1.0, std::abs(expected[c])));
      }
    }
    const ExpertLoad load =
        expert_load(download<float>(program, routing.logits),
                    download<uint32_t>(program, routing.routes), kExperts, kind.experts_per_token);
    CHECK(load.tokens == sent);
    CHECK(
        std::abs(std::accumulate(load.mean_probability.begin(), load.mean_probability.end(), 0.0) -
                 1) < 1e-6);
    // With all experts chosen, the load is balanced whatever the probabilities are.
    if (kind.experts_per_token == kExperts) CHECK(std::abs(load.balance - 1) < 1e-6);
  }
}

TEST_CASE("What experts were not chosen is not read") {
  Parameters parameters;
  const Parameter router = parameters.random({kExperts, kWidth}),
                  up = parameters.random({kExperts, kHidden, kWidth}),
                  down = parameters.random({kExperts, kWidth, kHidden});
  constexpr uint32_t kChosen = 2;
  // One case is a step of decoding; the other is a prompt whose tokens are alike and so choose the
  // same experts.
  for (const uint32_t tokens : {1u, 12u}) {
    INFO(tokens << " tokens");
    const Parameter one = parameters.random({1, kWidth});
    std::vector<float> rows;
    for (uint32_t token = 0; token < tokens; ++token)
      rows.insert(rows.end(), one.values.begin(), one.values.end());
    const Tensor x =
        parameters.put({tokens, kWidth}, DataType::kF32, std::as_bytes(std::span(rows)));
    uint64_t bytes = 0;
    const auto run = [&](const Tensor& up_of, const Tensor& down_of,
                         std::vector<uint32_t>& routes) {
      const MixtureOfExperts layer{.router = {router.tensor, {}},
                                   .rules = parameters.words(MixtureOfExperts::rules_words()),
                                   .up = up_of,
                                   .down = down_of,
                                   .activation = Activation::kRelu,
                                   .experts_per_token = kChosen,
                                   .normalize = true};
      ProgramBuilder builder(tests::shared_device(), "experts");
      MixtureOfExperts::Routing routing;
      const Tensor y = layer(builder, x, &routing);
      builder.keep(y);
      builder.keep(routing.routes);
      Program program = builder.build();
      program.run();
      routes = download<uint32_t>(program, routing.routes);
      bytes = 0;
      for (const Node& node : program.nodes())
        if (node.kernel->op == Op::kExpertMatmul) bytes += node.work.bytes;
      return download<float>(program, y);
    };
    std::vector<uint32_t> routes;
    const std::vector<float> expected = run(up.tensor, down.tensor, routes);
    std::vector<bool> chosen(kExperts);
    for (size_t route = 0; route < routes.size() / 2; ++route) chosen[routes[2 * route + 1]] = true;
    REQUIRE(std::ranges::count(chosen, true) == kChosen);
    const auto poisoned = [&](Parameter weight) {
      const size_t size = weight.values.size() / kExperts;
      for (size_t i = 0; i < weight.values.size(); ++i)
        if (!chosen[i / size]) weight.values[i] = std::nanf("");
      return parameters.put(weight.tensor.shape, DataType::kF32,
                            std::as_bytes(std::span(weight.values)));
    };
    CHECK(run(poisoned(up), poisoned(down), routes) == expected);
    if (tokens > 1) continue;
    // The bytes that a step counts as read: two of five experts' matrices, and little beside them.
    const uint64_t matrices = (up.tensor.bytes() + down.tensor.bytes()) / kExperts * kChosen;
    CHECK(bytes >= matrices);
    CHECK(bytes < matrices + (up.tensor.bytes() + down.tensor.bytes()) / kExperts);
  }
}

TEST_CASE("The load report tells an even router from one that has collapsed") {
  const std::vector<float> even(8, 0.0f), collapsed = {50, 0, 50, 0, 50, 0, 50, 0};
  const std::vector<uint32_t> alternating = {0, 0, 0, 1, 0, 0, 0, 1}, first(8, 0);
  CHECK(expert_load(even, alternating, 2, 1).balance == 1);
  CHECK(expert_load(even, alternating, 2, 1).tokens == std::vector<uint64_t>{2, 2});
  CHECK(std::abs(expert_load(collapsed, first, 2, 1).balance - 2) < 1e-9);
  CHECK_THROWS_AS(expert_load(even, first, 3, 1), ShapeError);
}

TEST_CASE("Experts that do not fit are refused by name") {
  Parameters parameters;
  const Tensor x = parameters.random({4, kWidth}).tensor,
               weight = parameters.random({kExperts, kHidden, kWidth}).tensor;
  const Tensor routes = parameters.words(std::vector<uint32_t>(16)).reshaped({4, 2, 2});
  ProgramBuilder builder(tests::shared_device(), "experts");
  CHECK_THROWS_AS(expert_matmul(builder, x, weight, routes, {.combine = true}), ShapeError);
  CHECK_THROWS_AS(expert_matmul(builder, x, weight, x, {}), ShapeError);
  CHECK_THROWS_AS(expert_matmul(builder, x, weight, routes, {.bias = x}), ShapeError);
  CHECK(expert_matmul(builder, x, weight, routes).shape == Shape{4, 2, kHidden});
  try {
    // Rows of 48 bytes begin at a multiple of 256 bytes every 16 rows.
    expert_matmul(builder, x, weight, routes, {.bound_bytes = 16 * 48 - 1});
    FAIL("it was not refused");
  } catch (const ShapeError& error) {
    CHECK(std::string(error.what()) ==
          ": expert_matmul: 16 rows of 48 bytes pass the 767 that one descriptor covers; "
          "use a device with a larger storage range");
  }
}
