// Products in the order `fast` of images in bfloat16.
#include "product.cuh"

PRODUCTS(ORDER_FAST, fast_bf16, u16, large, 128, 128, 8, 8)
EXPORT(fast_bf16_nt_large)
EXPORT(fast_bf16_nn_large)
EXPORT(fast_bf16_tn_large)
PRODUCTS(ORDER_FAST, fast_bf16, u16, tall, 128, 64, 8, 4)
EXPORT(fast_bf16_nt_tall)
EXPORT(fast_bf16_nn_tall)
EXPORT(fast_bf16_tn_tall)
PRODUCTS(ORDER_FAST, fast_bf16, u16, small, 64, 64, 4, 4)
EXPORT(fast_bf16_nt_small)
EXPORT(fast_bf16_nn_small)
EXPORT(fast_bf16_tn_small)
