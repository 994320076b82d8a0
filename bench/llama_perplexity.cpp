// Measures llama.cpp's perplexity of a text like llama-perplexity, for distributions that have its
// library but not that program, to compare with `mulciber perplexity`. CPU backend only, f32 keys
// and values.
//
//   g++ -O2 -std=c++17 bench/llama_perplexity.cpp -o llama_perplexity -lllama -lggml -lggml-base
//   ./llama_perplexity MODEL.gguf TEXT 256
//
// Debian testing: packages libllama-dev and libggml-dev.
#include <ggml-backend.h>
#include <llama.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: %s MODEL TEXT CONTEXT\n", argv[0]), 2;
  const int context = std::atoi(argv[3]);
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all();
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  llama_model* model = llama_model_load_from_file(argv[1], model_params);
  if (!model) return std::fprintf(stderr, "%s: cannot be loaded\n", argv[1]), 2;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = static_cast<uint32_t>(context);
  params.type_k = params.type_v = GGML_TYPE_F32;
  llama_context* state = llama_init_from_model(model, params);
  if (!state) return std::fprintf(stderr, "no context of %d\n", context), 2;

  std::ifstream in(argv[2], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const llama_vocab* vocab = llama_model_get_vocab(model);
  std::vector<llama_token> ids(text.size() + 8);
  ids.resize(static_cast<size_t>(llama_tokenize(vocab, text.data(),
                                                static_cast<int32_t>(text.size()), ids.data(),
                                                static_cast<int32_t>(ids.size()), true, false)));
  const int vocabulary = llama_vocab_n_tokens(vocab),
            chunks = static_cast<int>(ids.size()) / context;
  double sum = 0;
  int count = 0;
  llama_batch batch = llama_batch_init(context, 0, 1);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    llama_memory_clear(llama_get_memory(state), true);
    llama_token* own = &ids[static_cast<size_t>(chunk) * context];
    if (llama_vocab_get_add_bos(vocab)) own[0] = llama_vocab_bos(vocab);
    batch.n_tokens = context;
    for (int i = 0; i < context; ++i) {
      batch.token[i] = own[i];
      batch.pos[i] = i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = i >= context / 2;
    }
    if (llama_decode(state, batch) != 0) return std::fprintf(stderr, "decoding failed\n"), 1;
    for (int i = context / 2; i < context - 1; ++i) {
      const float* logits = llama_get_logits_ith(state, i);
      double largest = logits[0], total = 0;
      for (int id = 1; id < vocabulary; ++id) largest = std::fmax(largest, logits[id]);
      for (int id = 0; id < vocabulary; ++id) total += std::exp(logits[id] - largest);
      sum -= logits[own[i + 1]] - largest - std::log(total);
      ++count;
    }
  }
  std::printf("perplexity %.4f over %d tokens of %d chunks of %d (%zu tokens in all)\n",
              std::exp(sum / count), count, chunks, context, ids.size());
}
