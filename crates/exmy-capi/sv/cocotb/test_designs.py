"""The designs of designs.sv held to exmy by cocotb; 1.8.1 is the last that takes Debian's Verilator, 5.006.

    python test_designs.py        # each design against exmy, then each with its planted bug, which is found

EXMY_LIBRARY names the shared library, target/release/libexmy_capi.so where it is not set.
"""

import collections
import ctypes
import os
import random
import sys
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

HERE = Path(__file__).resolve().parent
LIBRARY = os.environ.get("EXMY_LIBRARY", str(HERE.parents[3] / "target/release/libexmy_capi.so"))
CASES = int(os.environ.get("EXMY_CASES", "20000"))
# As exmy.h numbers the flags.
INEXACT, SATURATED = 1, 32
# Codes where bugs live: zeros, subnormal numbers, ones, largest numbers, NaN.
INTERESTING = [sign | code for sign in (0, 0x80) for code in (0, 1, 3, 7, 8, 0x38, 0x39, 0x7D, 0x7E, 0x7F)]


class Exmy:
    """What a bench asks exmy for: one operation, or the dot products of one unit."""

    def __init__(self):
        self.lib = ctypes.CDLL(LIBRARY)
        self.lib.exmy_message.restype = ctypes.c_char_p
        self.lib.exmy_evaluate.argtypes = [ctypes.c_void_p] + [ctypes.c_uint64] * 3 + [ctypes.c_uint32] + [
            ctypes.c_void_p] * 2
        self.lib.exmy_unit_words.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        self.lib.exmy_unit_dot_random.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_void_p] * 4 + [
            ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]

    def check(self, status):
        if status != 0:
            raise ValueError(self.lib.exmy_message().decode())

    def function(self, name, settings=""):
        """A call of operands and a random word that returns result and flags."""
        handle = ctypes.c_void_p()
        self.check(self.lib.exmy_function_new(name.encode(), settings.encode(), ctypes.byref(handle)))
        result, flags = ctypes.c_uint64(), ctypes.c_uint8()

        def evaluate(a, b=0, c=0, word=0):
            out = ctypes.byref(result), ctypes.byref(flags)
            self.check(self.lib.exmy_evaluate(handle, a, b, c, word, *out))
            return result.value, flags.value

        return evaluate

    def dot(self, name):
        """A call of bytes of elements, of one scale each, an addend, and the words of a unit that rounds by some."""
        handle = ctypes.c_void_p()
        self.check(self.lib.exmy_unit_new(name.encode(), ctypes.byref(handle)))
        result, count = ctypes.c_uint64(), ctypes.c_size_t()

        def dot(a, b, a_scale, b_scale, c, words=()):
            scales = [bytes([scale]) for scale in (a_scale, b_scale)]
            self.check(self.lib.exmy_unit_words(handle, len(a), ctypes.byref(count)))
            if len(words) != count.value:
                raise ValueError(f"{name} takes {count.value} random words for {len(a)} elements, not {len(words)}")
            words = (ctypes.c_uint32 * len(words))(*words)
            sides = bytes(a), bytes(b), *scales
            self.check(self.lib.exmy_unit_dot_random(handle, len(a), *sides, c, words, ctypes.byref(result)))
            return result.value

        return dot


class Exercised:
    """What the cases of a design had: classes of codes by operand or result, and what happened to results."""

    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)

    def codes(self, what, codes, exponent_bits, mantissa_bits, is_ieee):
        """Codes of a format; of one that is not IEEE's, all ones alone are NaN, and no code is infinity."""
        top, ones = (1 << exponent_bits) - 1, (1 << mantissa_bits) - 1
        for code in codes:
            exponent, mantissa = code >> mantissa_bits & top, code & ones
            if exponent == 0:
                kind = "subnormal" if mantissa else "zero"
            elif exponent == top and is_ieee:
                kind = "NaN" if mantissa else "infinite"
            else:
                kind = "NaN" if exponent == top and mantissa == ones else "normal"
            self.counts[what][kind] += 1

    def event(self, what, happened):
        self.counts["happened"][what] += bool(happened)

    def show(self, design):
        for what, counts in self.counts.items():
            print(f"exercised {design}, {what}: " + ", ".join(f"{kind} {n}" for kind, n in sorted(counts.items())))


def f32(draw, exponents):
    """A code of binary32: one of eight is zero, subnormal, infinite or NaN, others have one of the exponents."""
    sign = draw.randrange(2) << 31
    if draw.random() < 0.125:
        return sign | draw.choice((0, 1, 0x7FFFFF, 0x7F800000, 0x7FC00000))
    return sign | draw.choice(exponents) << 23 | draw.randrange(1 << 23)


def is_nan(code, mantissa_bits, bits):
    """Whether a code of IEEE's kind is NaN, of either sign."""
    magnitude = code & (1 << bits - 1) - 1
    return magnitude > (1 << bits - 1) - (1 << mantissa_bits)


def e4m3(draw):
    """A code of E4M3."""
    return draw.choice(INTERESTING) if draw.random() < 0.25 else draw.randrange(256)


def planted():
    """Whether the design has its bug: it has one."""
    bug = os.environ.get("EXMY_BUG", "0")
    if bug not in ("0", "1"):
        raise ValueError(f"EXMY_BUG is {bug!r}: 1 gives a design the one bug that it has, 0 none")
    return int(bug)


async def settle(dut):
    dut.bug.value = planted()
    await Timer(1, "ns")


@cocotb.test()
async def multiply_add(dut):
    wanted, draw, exercised = Exmy().function("e4m3_mulAdd", "overflow=sat-finite"), random.Random(1), Exercised()
    away, zero = (Exmy().function("e4m3_mulAdd", f"overflow=sat-finite,round={mode}") for mode in ("rna", "rnz"))
    for _ in range(CASES):
        a, b, c = (e4m3(draw) for _ in range(3))
        dut.a.value, dut.b.value, dut.c.value = a, b, c
        await settle(dut)
        result, flags = wanted(a, b, c)
        exercised.codes("operands", (a, b, c), 4, 3, False)
        exercised.codes("results", [result], 4, 3, False)
        exercised.event("inexact", flags & INEXACT)
        exercised.event("saturated", flags & SATURATED)
        # To nearest, modes differ where a result is in the middle of two numbers.
        exercised.event("ties", away(a, b, c)[0] != zero(a, b, c)[0])
        # The design's NaN has no sign, exmy's that of its operand.
        result = 0x7F if result & 0x7F == 0x7F else result
        found = int(dut.d.value)
        assert found == result, f"{a:02x} * {b:02x} + {c:02x} is {result:02x}, the design has {found:02x}"
        assert int(dut.inexact.value) == flags & INEXACT, f"{a:02x} * {b:02x} + {c:02x}: inexact is {flags & 1}"
    exercised.show("multiply_add")


@cocotb.test()
async def dot_product(dut):
    wanted, draw, exercised = Exmy().dot("custom,l=32,f=25:mxfp8-e4m3"), random.Random(2), Exercised()
    for _ in range(CASES // 10):
        # NaN among 64 codes in one case of eight, and addends about as large as the products.
        codes = range(0x7F) if draw.random() < 0.875 else range(0x80)
        a, b = ([draw.choice(codes) | draw.choice((0, 0x80)) for _ in range(32)] for _ in range(2))
        scales = [draw.randrange(117, 137) for _ in range(2)]
        c = f32(draw, range(117, 147))
        dut.a.value, dut.b.value = int.from_bytes(bytes(a), "little"), int.from_bytes(bytes(b), "little")
        dut.a_scale.value, dut.b_scale.value, dut.c.value = *scales, c
        await settle(dut)
        result, found = wanted(a, b, *scales, c), int(dut.d.value)
        exercised.codes("operands", a + b, 4, 3, False)
        exercised.codes("addends", [c], 8, 23, True)
        exercised.codes("results", [result], 8, 23, True)
        operands = f"{bytes(a).hex()} {bytes(b).hex()} {scales} + {c:08x}"
        is_equal = found == result or is_nan(found, 23, 32) and is_nan(result, 23, 32)
        assert is_equal, f"{operands} is {result:08x}, the design has {found:08x}"
    exercised.show("dot_product")


@cocotb.test()
async def stochastic_converter(dut):
    exmy, draw, exercised = Exmy(), random.Random(3), Exercised()
    wanted, down = (exmy.function("f32_to_e4m3", f"round={mode},overflow=sat-finite") for mode in ("sr8", "rtz"))
    for _ in range(CASES):
        x = f32(draw, range(110, 140))
        word = draw.randrange(256)
        dut.x.value, dut.random.value = x, word
        await settle(dut)
        result, flags = wanted(x, word=word << 24)  # the word's top bits are used
        found = int(dut.y.value)
        exercised.codes("operands", [x], 8, 23, True)
        exercised.codes("results", [result], 4, 3, False)
        exercised.event("saturated", flags & SATURATED)
        within = flags & INEXACT and not flags & SATURATED
        exercised.event("up by the random bits", within and result != down(x)[0])
        exercised.event("down by the random bits", within and result == down(x)[0])
        assert found == result or found & result & 0x7F == 0x7F, f"{x:08x} with {word:02x} is {result:02x}, the design has {found:02x}"
    exercised.show("stochastic_converter")


@cocotb.test()
async def stochastic_dot_product(dut):
    wanted, draw = Exmy().dot("custom,l=4,align=exact,out=e5m2@sr4:e2m1+e5m2"), random.Random(4)
    exercised = Exercised()
    for _ in range(CASES // 10):
        a, b = ([draw.randrange(16) for _ in range(8)] for _ in range(2))
        c, steps = draw.randrange(2) << 7 | draw.randrange(0x7C), [draw.randrange(16) for _ in range(2)]
        dut.a.value, dut.b.value = (sum(x << 4 * i for i, x in enumerate(side)) for side in (a, b))
        dut.c.value, dut.random.value = c, steps[1] << 4 | steps[0]
        await settle(dut)
        result, found = wanted(a, b, 0, 0, c, [step << 28 for step in steps]), int(dut.d.value)
        exercised.codes("addends", [c], 5, 2, True)
        exercised.codes("results", [result], 5, 2, True)
        assert found == result, f"{a} {b} + {c:02x} by {steps} is {result:02x}, the design has {found:02x}"
    exercised.show("stochastic_dot_product")


def main():
    from cocotb.runner import get_results, get_runner

    if sys.argv[1:] or "EXMY_BUG" in os.environ:
        sys.exit(
            "each design runs without and with its bug, so nothing is to be said of bugs; there are EXMY_CASES, "
            "EXMY_LIBRARY, EXMY_BUILD and SIM"
        )
    wrong = []
    tests = {
        "e4m3_mul_add": "multiply_add",
        "mxfp8_dot": "dot_product",
        "f32_to_e4m3_stochastic": "stochastic_converter",
        "fp4_dot_stochastic": "stochastic_dot_product",
    }
    for design, test in tests.items():
        runner = get_runner(os.environ.get("SIM", "verilator"))
        folder = Path(os.environ.get("EXMY_BUILD", "sim_build")).resolve() / design
        runner.build(
            verilog_sources=[HERE.parent / "designs.sv"], hdl_toplevel=design, build_dir=folder,
            build_args=["-Wno-fatal"],
        )
        for bug in (0, 1):
            results = runner.test(
                hdl_toplevel=design, test_module="test_designs", testcase=test,
                build_dir=folder, test_dir=folder, results_xml=str(folder / f"bug{bug}.xml"),
                extra_env={"EXMY_BUG": str(bug), "EXMY_LIBRARY": LIBRARY},
            )
            ran, failed = get_results(results)
            if (ran, failed) != (1, bug):
                wrong.append(f"{design}, bug {bug}: {failed} of {ran} tests failed")
    print("\n".join(wrong) or "PASSED")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
