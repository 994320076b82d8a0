// Single operations of ggml on its Vulkan backend, to show bench/pipeline_layer.cpp the pipelines
// that llama.cpp uses for them. Inputs are zero: a stub device computes nothing anyway.
//
//   g++ -O2 -std=c++17 bench/ggml_work.cpp -o ggml_work -lggml -lggml-base
//   ggml_work matmul:q4_0:1,4096,4096 attention:f16:1,512,4096,32,64,8
//
// matmul:TYPE:M,N,K: M rows of f32 times N columns of K weights; attention:TYPE:batch, queries,
// keys, heads, head size, heads of keys: f32 queries, keys and values of TYPE. Before each
// operation, a line {"work": ARGUMENT} goes to the file that MULCIBER_PIPELINE_LOG names.
#include <ggml-backend.h>
#include <ggml.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

ggml_type type_of(const std::string& name) {
  for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
    const char* known = ggml_type_name(static_cast<ggml_type>(type));
    // ggml writes the K of q4_K in upper case.
    if (known != nullptr && strcasecmp(known, name.c_str()) == 0)
      return static_cast<ggml_type>(type);
  }
  std::fprintf(stderr, "ggml_work: no type %s\n", name.c_str());
  std::exit(2);
}

ggml_tensor* result_of(ggml_context* context, const std::string& op, ggml_type type,
                       const std::vector<long>& n) {
  if (op == "matmul" && n.size() == 3) {
    ggml_tensor* weights = ggml_new_tensor_2d(context, type, n[2], n[1]);
    return ggml_mul_mat(context, weights, ggml_new_tensor_2d(context, GGML_TYPE_F32, n[2], n[0]));
  }
  if (op == "attention" && n.size() == 6) {
    ggml_tensor* q = ggml_new_tensor_4d(context, GGML_TYPE_F32, n[4], n[1], n[3], n[0]);
    ggml_tensor* k = ggml_new_tensor_4d(context, type, n[4], n[2], n[5], n[0]);
    ggml_tensor* v = ggml_new_tensor_4d(context, type, n[4], n[2], n[5], n[0]);
    const float scale = 1.0F / std::sqrt(static_cast<float>(n[4]));
    return ggml_flash_attn_ext(context, q, k, v, nullptr, scale, 0, 0);
  }
  std::fprintf(stderr, "ggml_work: what is %s?\n", op.c_str());
  std::exit(2);
}

void run(ggml_backend_t backend, const std::string& work) {
  if (const char* log = std::getenv("MULCIBER_PIPELINE_LOG"))
    std::ofstream(log, std::ios::app) << "{\"work\": \"" << work << "\"}\n";
  std::stringstream words(work);
  std::string op, type, number;
  std::getline(words, op, ':');
  std::getline(words, type, ':');
  std::vector<long> shape;
  while (std::getline(words, number, ',')) shape.push_back(std::stol(number));

  ggml_context* context =
      ggml_init({16 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true});
  ggml_tensor* result = result_of(context, op, type_of(type), shape);
  ggml_cgraph* graph = ggml_new_graph(context);
  ggml_build_forward_expand(graph, result);
  ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(context, backend);
  if (buffer == nullptr || ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS) {
    std::fprintf(stderr, "ggml_work: %s failed\n", work.c_str());
    std::exit(1);
  }
  ggml_backend_buffer_free(buffer);
  ggml_free(context);
}

}  // namespace

int main(int count, char** arguments) {
  ggml_backend_load_all();
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (std::strncmp(ggml_backend_dev_name(device), "Vulkan", 6) != 0) continue;
    ggml_backend_t backend = ggml_backend_dev_init(device, nullptr);
    for (int work = 1; work < count; ++work) run(backend, arguments[work]);
    ggml_backend_free(backend);
    return 0;
  }
  std::fprintf(stderr, "ggml_work: no Vulkan device\n");
  return 1;
}
