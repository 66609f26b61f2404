// Products in the order `fast` of images in bfloat16.
#include "product.cuh"

PRODUCTS(ORDER_FAST, fast_bf16, u16)
EXPORT(fast_bf16_nt_large)
EXPORT(fast_bf16_nn_large)
EXPORT(fast_bf16_tn_large)
EXPORT(fast_bf16_nt_tall)
EXPORT(fast_bf16_nn_tall)
EXPORT(fast_bf16_tn_tall)
EXPORT(fast_bf16_nt_small)
EXPORT(fast_bf16_nn_small)
EXPORT(fast_bf16_tn_small)
