"""PyTorch's tensors for the functions of `exmy._exmy`: which ones can be read, and where their numbers lie.

A tensor on the CPU becomes an array of NumPy that views it, one on a GPU the address of its first number. What cannot
be read is refused in words that say what would be.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

KINDS = (torch.float32, torch.bfloat16, torch.float16)


def gpu_of(x: torch.Tensor, name: str) -> int | None:
    """The number of the GPU that a tensor is on; None on the CPU."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} is a {type(x).__name__}, and a tensor of PyTorch is needed: torch.as_tensor({name})")
    if type(x).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise TypeError(
            f"{name} is a {type(x).__name__}, which has its numbers in a way of its own or, as PyTorch's fakes, has none; "
            f"a plain torch.Tensor is needed"
        )
    if torch.jit.is_tracing():
        raise RuntimeError("a trace would keep the numbers of one pass, since exmy computes outside of PyTorch")
    if x.is_nested:
        raise TypeError(f"{name} is nested, and a tensor of one shape is needed: {name}.to_padded_tensor(0.0)")
    if x.layout is not torch.strided:
        raise TypeError(f"{name} is sparse ({x.layout}), and a dense tensor is needed: {name}.to_dense()")
    if x.is_quantized:
        raise TypeError(f"{name} is quantized ({x.dtype}), and its numbers are needed: {name}.dequantize()")
    if x.device.type == "cpu":
        return None
    if x.device.type == "cuda":
        return x.device.index
    if x.device.type == "meta":
        raise TypeError(
            f"{name} is on meta, where tensors have shapes and no numbers; exmy computes on the CPU and on NVIDIA "
            f"GPUs: model.to_empty(device='cpu') makes room for weights, load_state_dict fills it"
        )
    raise TypeError(f"{name} is on {x.device}, and exmy computes on the CPU and on NVIDIA GPUs: {name}.cpu()")


def check_gradient(x: torch.Tensor, name: str) -> None:
    """Refuses a tensor whose gradient PyTorch would look for: no function outside of `exmy.torch` has one."""
    if forward_ad.unpack_dual(x).tangent is not None:
        raise RuntimeError(
            f"{name} has a tangent, which ends here: exmy has no derivatives forward; for numbers alone "
            f"torch.autograd.forward_ad.unpack_dual({name}).primal"
        )
    if x.requires_grad and torch.is_grad_enabled():
        raise RuntimeError(
            f"{name} requires a gradient, which ends here: exmy.torch.fake_quantize({name}, 'nvfp4') hands it on as it "
            f"is, exmy.torch.Linear multiplies; for numbers alone {name}.detach(), or torch.no_grad()"
        )


def empty(shape, like, kind: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor to be written, where another one is."""
    return torch.empty(tuple(shape), dtype=kind, device=like.device)


def written(out: torch.Tensor) -> torch.Tensor:
    """A tensor to be written that PyTorch shall know to be: a graph that saved its old numbers then says so."""
    if out.requires_grad:
        raise ValueError("out requires a gradient, which exmy does not compute: exmy.torch.fake_quantize(x, ..)")
    if not out.is_inference():
        torch.autograd.graph.increment_version(out)
    return out.detach()


def aligned(x: torch.Tensor) -> torch.Tensor:
    """A tensor of a GPU that begins where kernels read it fastest, copied if it is a part of another."""
    return x.clone() if x.data_ptr() % 256 else x


def whole(x: torch.Tensor) -> torch.Tensor:
    """A tensor of a GPU as kernels read it, copied only if it is not so."""
    return aligned(x.resolve_neg().contiguous())


def plain(x: torch.Tensor, name: str) -> torch.Tensor:
    """A tensor contiguous and of float32, copied only where it is not."""
    gpu = gpu_of(x, name)
    if x.dtype not in KINDS:
        how = "model.float()" if name in ("weight", "bias") else f"{name}.float()"
        if x.is_complex():
            how = f"torch.view_as_real({name}) has their parts as numbers"
        raise TypeError(f"{name} has elements of {x.dtype}; float32, bfloat16 or float16 is needed: {how}")
    x = x.detach().float().resolve_neg().contiguous()
    return x if gpu is None else aligned(x)


def memory(x: torch.Tensor | None, gpu: int | None):
    """What a function of `_exmy` takes for a plain tensor: an array, or an address on a GPU."""
    return None if x is None else x.numpy() if gpu is None else x.data_ptr()


def wait(gpu: int | None) -> None:
    """Waits for what PyTorch has asked of a GPU."""
    if gpu is not None and torch.cuda.is_available():
        torch.cuda.current_stream(gpu).synchronize()


def rounded(x: torch.Tensor, name: str, quantizer, axis: int, seed, stream) -> torch.Tensor:
    """The values of a tensor in low precision, in its own type and place."""
    found = quantizer.fake_quantize(plain(x, name), axis=axis, seed=seed, stream=stream)
    return found.contiguous().to(x.dtype)
