// Products in the order of `gemm::f32`.
#include "product.cuh"

PRODUCT(ORDER_F32, f32, float, nt, true, true, large, 128, 128, 2, true)
PRODUCT(ORDER_F32, f32, float, nn, true, false, large, 128, 128, 2, true)
PRODUCT(ORDER_F32, f32, float, tn, false, false, large, 128, 128, 2, true)
EXPORT(f32_nt_large)
EXPORT(f32_nn_large)
EXPORT(f32_tn_large)
PRODUCTS(ORDER_F32, f32, float, tall, 128, 64, 4, false)
EXPORT(f32_nt_tall)
EXPORT(f32_nn_tall)
EXPORT(f32_tn_tall)
PRODUCTS(ORDER_F32, f32, float, small, 64, 64, 4, false)
EXPORT(f32_nt_small)
EXPORT(f32_nn_small)
EXPORT(f32_tn_small)
