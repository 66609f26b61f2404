// Products in the order of `gemm::f32`.
#include "product.cuh"

PRODUCTS(ORDER_F32, f32, float)
EXPORT(f32_nt_large)
EXPORT(f32_nn_large)
EXPORT(f32_tn_large)
EXPORT(f32_nt_tall)
EXPORT(f32_nn_tall)
EXPORT(f32_tn_tall)
EXPORT(f32_nt_small)
EXPORT(f32_nn_small)
EXPORT(f32_tn_small)
