#version 450
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) buffer B { float data[]; };
void main() {
  coopmat<float, gl_ScopeWorkgroup, 64, 64, gl_MatrixUseAccumulator> m =
      coopmat<float, gl_ScopeWorkgroup, 64, 64, gl_MatrixUseAccumulator>(0.0);
  coopMatStoreTensorNV(m, data, 0, setTensorLayoutDimensionNV(createTensorLayoutNV(2, 0), 64, 64));
}
