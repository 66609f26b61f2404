// Products in the order `fast` of images in binary32.
#include "product.cuh"

PRODUCTS(ORDER_FAST, fast_f32, float)
EXPORT(fast_f32_nt_large)
EXPORT(fast_f32_nn_large)
EXPORT(fast_f32_tn_large)
EXPORT(fast_f32_nt_tall)
EXPORT(fast_f32_nn_tall)
EXPORT(fast_f32_tn_tall)
EXPORT(fast_f32_nt_small)
EXPORT(fast_f32_nn_small)
EXPORT(fast_f32_tn_small)
