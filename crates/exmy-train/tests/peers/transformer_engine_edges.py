"""What `transformer_engine.py` quantizes besides operands of a training: matrices at the ends of NVFP4.

Ties of elements, ties of scales in both orders of operations that Transformer Engine has had, scales of zero
and of 448, zeros of both signs, tensors from the smallest to the largest of bfloat16, infinities. There is no
NaN: the reference encodes it as zero, the kernels as 6.
"""

import torch


def edges():
    """Matrices of 16 x 32 at the ends of what NVFP4 holds."""
    generator = torch.Generator().manual_seed(1)
    # Where the tensor's largest magnitude is 2688, a block whose largest is 6 s has the scale s, here 1.
    ties = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0])
    near = torch.cat([ties, -ties, ties * (1 - 2**-7), ties * (1 + 2**-7)]).clamp(max=6.0).repeat(16, 1)
    near[15, 31] = 2688.0
    # Between two scales, above the largest, down to where they are zero.
    large, small = [1.0625, 1.1875, 17, 19, 440, 448, 448], [2**-6, 2**-7, 2**-9, 2**-10, 3 * 2**-10, 2**-11]
    between = 6 * torch.tensor([*large, *small, 0, 0, 0])
    scales = between[:, None] * (2 * torch.rand(16, 32, generator=generator) - 1)
    scales[:, 3] = between
    scales[14] = -0.0
    # Ties of scales if nothing were rounded: the orders of operations until 2.13 and since differ there.
    orders = 2 * torch.rand(32, 16, generator=generator) - 1
    maxima = torch.tensor([9 * (17 + 2 * (i % 6)) * 2.0 ** -(i // 6) for i in range(32)])
    orders *= maxima[:, None] / 64
    orders[:, 7] = maxima / 64
    orders[31, 7] = 63.0
    found = {"ties": near, "scales": scales, "orders": orders.view(16, 32)}
    found |= {"zeros": torch.zeros(16, 32), "minus zeros": -torch.zeros(16, 32)}
    wide = torch.randn(16, 32, generator=generator, dtype=torch.float64)
    wide *= torch.exp2(torch.arange(16.0) - 12)[:, None]
    # Encoded by 2688 / amax as it is, by the largest f32 in its place, and where all numbers are subnormal.
    powers = {"largest": 120, "ordinary": 0, "small": -110, "smaller": -126, "smallest": -134}
    found |= {name: wide * 2.0**power for name, power in powers.items()}
    found["infinite"] = wide.clone()
    found["infinite"][3, 5], found["infinite"][7, 20] = torch.inf, -torch.inf
    return {name: x.to(torch.bfloat16) for name, x in found.items()}
