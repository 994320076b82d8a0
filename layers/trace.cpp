#include "layers/trace.h"

#include "mulciber/error.h"
#include "ops/elementwise.h"

namespace mulciber {

void Trace::keep(ProgramBuilder& builder, const std::string& word, const Tensor& tensor) {
  const Tensor wide =
      tensor.type == DataType::kF16 ? convert(builder, tensor, DataType::kF32) : tensor;
  builder.keep(wide);
  tensors[builder.path() + "." + word] = wide;
}

void Trace::keep_copy(ProgramBuilder& builder, const std::string& word, const Tensor& tensor) {
  keep(builder, word, convert(builder, tensor, tensor.type));
}

const Tensor& Trace::at(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    throw ShapeError("trace", "no layer left a tensor named \"" + name + "\"",
                     "ask for hidden states or attentions before the program is built");
  }
  return found->second;
}

}  // namespace mulciber
