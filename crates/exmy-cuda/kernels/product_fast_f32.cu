// Products in the order `fast` of images in binary32.
#include "product.cuh"

PRODUCTS(ORDER_FAST, fast_f32, float, large, 128, 128, 8, 8)
EXPORT(fast_f32_nt_large)
EXPORT(fast_f32_nn_large)
EXPORT(fast_f32_tn_large)
PRODUCTS(ORDER_FAST, fast_f32, float, tall, 128, 64, 8, 4)
EXPORT(fast_f32_nt_tall)
EXPORT(fast_f32_nn_tall)
EXPORT(fast_f32_tn_tall)
PRODUCTS(ORDER_FAST, fast_f32, float, small, 64, 64, 4, 4)
EXPORT(fast_f32_nt_small)
EXPORT(fast_f32_nn_small)
EXPORT(fast_f32_tn_small)
