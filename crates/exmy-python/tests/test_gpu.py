"""A GPU without PyTorch: its memory comes from the driver, and results are those of the CPU. Runs with pytest, or alone
as `python test_gpu.py`."""

import ctypes
import unittest

import numpy as np

import exmy


class Driver:
    """The driver's own memory on GPU 0, in its primary context, as PyTorch has it."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise OSError(f"{name} answers {status}")

    def put(self, x):
        x, address = np.ascontiguousarray(x), ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(x.nbytes, 1)))
        self.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(x.nbytes))
        return address.value

    def get(self, address, shape):
        x = np.empty(shape, np.float32)
        size = ctypes.c_size_t(x.nbytes)
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(x.ctypes.data), ctypes.c_uint64(address), size)
        return x


def driver():
    try:
        return Driver()
    except OSError as error:
        raise unittest.SkipTest(f"no GPU: {error}") from error


RNG = np.random.default_rng(5)
X, W, G = (RNG.standard_normal(shape).astype(np.float32) for shape in [(96, 64), (32, 64), (96, 32)])
BIAS = RNG.standard_normal(32).astype(np.float32)


def same(found, expected):
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_arrays_are_rounded_there():
    gpu = driver()
    for name in ("nvfp4", "mxfp4@sr8", "e4m3", "bf16>rht16>nvfp4"):
        for axis in (0, 1):
            x, out = gpu.put(X), gpu.put(np.full_like(X, 7))
            exmy.Quantizer(name)._fake_quantize_on(0, x, X.shape, axis == 1, 3, "test", out)
            same(gpu.get(out, X.shape), exmy.fake_quantize(X, name, axis=axis, seed=3, stream="test"))
            same(gpu.get(x, X.shape), X)


def test_layers_multiply_there():
    gpu = driver()
    members = [([("layers.0.up_proj", 32)], 64)]
    recipes = ["f32", "mxfp8-mix", "nvfp4@sr8", "nv-nvfp4", "e4m3/tensor:e8m0@rceil@window4", "bf16+sums=hopper:bf16"]
    for recipe in recipes:
        here, there = (exmy._exmy.Plan(recipe, members, None, 1) for _ in range(2))
        for step in range(3):
            at, x = ((step, 0, True), 0), X * np.float32(2) ** step
            shapes = [(96, 32), (96, 64), (32, 64), (32,)]
            ours, theirs = [np.empty(shape, np.float32) for shape in shapes], []
            y, dx, dw, db = ours
            here.multiply(None, "forward", 0, at, 96, (x, W, BIAS), (y, None))
            here.multiply(None, "grad_input", 0, at, 96, (G, W, None), (dx, None))
            here.multiply(None, "grad_weight", 0, at, 96, (G, x, None), (dw, db))
            theirs = [gpu.put(np.full(shape, 7, np.float32)) for shape in shapes]
            y, dx, dw, db = theirs
            x, w, g, b = (gpu.put(one) for one in (x, W, G, BIAS))
            try:
                there.multiply(0, "forward", 0, at, 96, (x, w, b), (y, None))
            except RuntimeError as error:
                # Tensor cores of other GPUs have other orders.
                assert "hopper" in recipe and "9.0" in str(error), error
                break
            there.multiply(0, "grad_input", 0, at, 96, (g, w, None), (dx, None))
            there.multiply(0, "grad_weight", 0, at, 96, (g, x, None), (dw, db))
            for one, other, shape in zip(ours, theirs, shapes):
                same(gpu.get(other, shape), one)
        assert here.memory == there.memory, recipe


def test_what_does_not_begin_where_it_should_is_refused():
    gpu = driver()
    x = gpu.put(X)
    try:
        exmy.Quantizer("mxfp4")._fake_quantize_on(0, x + 4, (1, 32), True, None, "test", x)
    except RuntimeError as error:
        assert "multiple of 256" in str(error)
    else:
        raise AssertionError("taken")


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            try:
                test()
                print("ok", name)
            except unittest.SkipTest as why:
                print("skipped", name, why)
