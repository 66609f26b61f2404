// Products in the order `fast` of images in binary32.
#include "product.cuh"

PRODUCT(ORDER_FAST, fast_f32, float, nt, true, true, large, 128, 128, 4, true)
PRODUCT(ORDER_FAST, fast_f32, float, nn, true, false, large, 128, 128, 4, true)
PRODUCT(ORDER_FAST, fast_f32, float, tn, false, false, large, 128, 128, 2, false)
EXPORT(fast_f32_nt_large)
EXPORT(fast_f32_nn_large)
EXPORT(fast_f32_tn_large)
PRODUCTS(ORDER_FAST, fast_f32, float, tall, 128, 64, 4, false)
EXPORT(fast_f32_nt_tall)
EXPORT(fast_f32_nn_tall)
EXPORT(fast_f32_tn_tall)
PRODUCTS(ORDER_FAST, fast_f32, float, small, 64, 64, 4, false)
EXPORT(fast_f32_nt_small)
EXPORT(fast_f32_nn_small)
EXPORT(fast_f32_tn_small)
