"""The module that is compiled from Rust; `exmy` is what to import."""

from typing import Any

class Format:
    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def bits(self) -> int: ...
    @property
    def exponent_bits(self) -> int: ...
    @property
    def mantissa_bits(self) -> int: ...
    @property
    def bias(self) -> int: ...
    @property
    def is_signed(self) -> bool: ...
    @property
    def has_infinity(self) -> bool: ...
    @property
    def has_nan(self) -> bool: ...
    @property
    def max(self) -> float: ...
    @property
    def smallest_normal(self) -> float | None: ...
    @property
    def smallest_subnormal(self) -> float: ...
    def value(self, code: int) -> float: ...

class Quantizer:
    def __init__(self, name: str) -> None: ...
    @property
    def is_stochastic(self) -> bool: ...

class Blocks:
    @staticmethod
    def from_parts(
        name: str,
        shape: tuple[int, int],
        along_cols: bool,
        codes: bytes,
        scales: bytes,
        tensor_scale: float | None,
    ) -> Blocks: ...
    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def along_cols(self) -> bool: ...
    @property
    def block(self) -> tuple[int, int]: ...
    @property
    def element(self) -> Format: ...
    @property
    def scale(self) -> Format: ...
    @property
    def tensor_scale(self) -> float | None: ...
    @property
    def packed(self) -> bytes: ...
    @property
    def packed_scales(self) -> bytes: ...

class Plan:
    def __init__(
        self, recipe: str, layers: list[tuple[list[tuple[str, int]], int]], steps: int | None, seed: int
    ) -> None: ...
    @property
    def recipe(self) -> str: ...
    @property
    def others(self) -> list[str]: ...
    @property
    def chooses(self) -> bool: ...
    memory: str
    def numbers(self, site: str, step: int) -> list[str]: ...
    def forward(
        self,
        device: int | None,
        layer: int,
        at: tuple[tuple[int, int, bool], int],
        rows: int,
        x: Any,
        w: Any,
        b: Any | None,
        y: Any,
    ) -> None: ...
    def grad_input(
        self,
        device: int | None,
        layer: int,
        at: tuple[tuple[int, int, bool], int],
        rows: int,
        g: Any,
        w: Any,
        dx: Any,
    ) -> None: ...
    def grad_weight(
        self,
        device: int | None,
        layer: int,
        at: tuple[tuple[int, int, bool], int],
        rows: int,
        g: Any,
        x: Any,
        dw: Any | None,
        db: Any | None,
    ) -> None: ...

def place_of(name: str) -> str | None: ...
def gemm(
    a: tuple[Blocks | Any, tuple[int, int], bool, str | None],
    b: tuple[Blocks | Any, tuple[int, int], bool, str | None],
    sum: str,
    output: str | None,
    rounding: str | None,
    seed: int | None,
    out: Any,
) -> None: ...
def random_words(seed: int, stream: str | tuple[str | int, ...], first: int, out: Any, count: int) -> None: ...
