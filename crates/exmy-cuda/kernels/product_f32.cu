// Products in the order of `gemm::f32`.
#include "product.cuh"

PRODUCTS(ORDER_F32, f32, float, large, 128, 128, 8, 8)
EXPORT(f32_nt_large)
EXPORT(f32_nn_large)
EXPORT(f32_tn_large)
PRODUCTS(ORDER_F32, f32, float, tall, 128, 64, 8, 4)
EXPORT(f32_nt_tall)
EXPORT(f32_nn_tall)
EXPORT(f32_tn_tall)
PRODUCTS(ORDER_F32, f32, float, small, 64, 64, 4, 4)
EXPORT(f32_nt_small)
EXPORT(f32_nn_small)
EXPORT(f32_tn_small)
