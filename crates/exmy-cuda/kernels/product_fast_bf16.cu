// Products in the order `fast` of images in bfloat16.
#include "product.cuh"

PRODUCT(ORDER_FAST, fast_bf16, u16, nt, true, true, large, 128, 128, 4, true)
PRODUCT(ORDER_FAST, fast_bf16, u16, nn, true, false, large, 128, 128, 4, true)
PRODUCT(ORDER_FAST, fast_bf16, u16, tn, false, false, large, 128, 128, 2, false)
EXPORT(fast_bf16_nt_large)
EXPORT(fast_bf16_nn_large)
EXPORT(fast_bf16_tn_large)
PRODUCTS(ORDER_FAST, fast_bf16, u16, tall, 128, 64, 4, false)
EXPORT(fast_bf16_nt_tall)
EXPORT(fast_bf16_nn_tall)
EXPORT(fast_bf16_tn_tall)
PRODUCTS(ORDER_FAST, fast_bf16, u16, small, 64, 64, 4, false)
EXPORT(fast_bf16_nt_small)
EXPORT(fast_bf16_nn_small)
EXPORT(fast_bf16_tn_small)
