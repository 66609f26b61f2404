"""Arrays of numbers of a format, as those of NumPy: codes in memory, arithmetic that rounds each result once.

NumPy moves elements and broadcasts; what computes is the library's arithmetic on codes, by `apply`.
"""

from __future__ import annotations

import numbers

import numpy as np

from . import _exmy
from ._arrays import _code_type, _gpu, _seed, _text
from ._format import Format

# Functions of NumPy, the operation of each, and the rounding mode that it names.
_UFUNCS = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.divide: "div",
    np.fmod: "fmod",
    np.power: "pow",
    np.negative: "negate",
    np.absolute: "abs",
    np.fabs: "abs",
    np.copysign: "copySign",
    np.minimum: "minimum",
    np.maximum: "maximum",
    np.fmin: "minimumNumber",
    np.fmax: "maximumNumber",
    np.sqrt: "sqrt",
    np.reciprocal: "recip",
    np.hypot: "hypot",
    np.rint: "roundToInt",
    np.floor: ("roundToInt", "rdn"),
    np.ceil: ("roundToInt", "rup"),
    np.trunc: ("roundToInt", "rtz"),
    np.arctan2: "atan2",
    np.equal: "eq",
    np.less: "lt_quiet",
    np.less_equal: "le_quiet",
}
_UFUNCS |= {
    getattr(np, name): name.replace("arc", "a")
    for name in "exp exp2 expm1 log log2 log1p sin cos tan sinh cosh tanh "
    "arcsin arccos arctan arcsinh arccosh arctanh".split()
}
# Those of the operands in turn.
_TURNED = {np.greater: np.less, np.greater_equal: np.less_equal}
# Questions that values answer.
_ASKED = (np.isnan, np.isinf, np.isfinite, np.signbit)

# Functions that move elements, of one array or of several that are joined.
_MOVE = {
    getattr(np, name)
    for name in "reshape ravel transpose moveaxis swapaxes squeeze expand_dims broadcast_to flip roll rot90 repeat "
    "tile take take_along_axis split array_split atleast_1d atleast_2d diagonal copy delete".split()
}
_JOIN = {np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.dstack}
_LIKE = {np.empty_like: 0, np.zeros_like: 0, np.ones_like: 1, np.full_like: None}
# Functions that write into their first argument, which would be values made for them alone.
_WRITE = {np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal}


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """Numbers of a format, in an array as NumPy's: indexed, reshaped, compared, added and multiplied.

    >>> x = Array([0.1, 1.0, 448.0], "e4m3")
    >>> x * 3 + x[1]
    exmy.Array([  1.25,   4.  , 448.  ], format='e4m3')
    >>> x.codes, np.asarray(x)[:2], x == 1
    (array([ 29,  56, 126], dtype=uint8), array([0.1015625, 1.       ], dtype=float32), array([False,  True, False]))
    >>> np.sqrt(x.astype("bf16"))
    exmy.Array([ 0.31835938,  1.        , 21.125     ], format='bf16')

    Each operation rounds its exact result once, to nearest even; beyond the largest number becomes what
    `Format.encode` makes of it. `apply` has other modes, other operations, and operands of several formats. Single
    numbers of Python are rounded to the format first. `np.asarray(x)` has the values, `x.codes` the codes.
    """

    def __init__(self, x, format, *, rounding=None, overflow=None, seed=None, stream="quantize"):
        """Numbers rounded to a format, as `Format.encode` does it; those of another `Array` once, too.

        Numbers may come as a tensor of PyTorch on the CPU; the codes are an array of NumPy all the same.
        """
        self.format = Format(format)
        how = {"rounding": rounding, "overflow": overflow, "seed": seed, "stream": stream}
        if isinstance(x, Array):
            self.codes = apply("convert", x, to=self.format, **how).codes
            return
        if _gpu(x, "x"):
            raise TypeError(f"x is on {x.device}, and an exmy.Array is on the CPU: x.cpu(); Format.encode takes both")
        codes = self.format.encode(x, **how)
        self.codes = codes if isinstance(codes, np.ndarray) else codes.numpy()

    @classmethod
    def from_codes(cls, codes, format) -> Array:
        """The array that has these codes, and their memory if they are integers of the smallest size."""
        format = Format(format)
        return _of(format, format._codes_of(codes))

    def astype(self, format, *, rounding=None, overflow=None, seed=None, stream="quantize") -> Array:
        """The same numbers in another format, each rounded once."""
        return Array(self, format, rounding=rounding, overflow=overflow, seed=seed, stream=stream)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if copy is False:
            raise ValueError("values are not in memory, codes are: numpy.asarray(x) makes them, x.codes has no copy")
        values = self.format.decode(self.codes)
        return values if dtype is None else values.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if ufunc in _TURNED:
            ufunc, inputs = _TURNED[ufunc], inputs[::-1]
        turned = ufunc is np.not_equal
        operation = "eq" if turned else _UFUNCS.get(ufunc)
        if method != "__call__" or operation is None and ufunc not in (*_ASKED, np.positive) or options:
            name = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
            how = "exmy.gemm(x, y, sum='exact')" if ufunc is np.matmul else f"{name}(numpy.asarray(x), ..), of values"
            options = f" with {', '.join(options)}" if options else ""
            raise TypeError(f"{name}{options} is no operation of an exmy.Array; there is {how}")
        if ufunc in _ASKED:
            found = ufunc(_seen(inputs[0], "rtz"))
        elif ufunc is np.positive:
            found = inputs[0].copy()
        else:
            name, rounding = operation if isinstance(operation, tuple) else (operation, None)
            found = apply(name, *inputs, rounding=rounding)
        found = ~found if turned else found
        if out is None:
            return found
        fits = isinstance(out[0], Array if isinstance(found, Array) else np.ndarray)
        if not fits or getattr(out[0], "format", None) != getattr(found, "format", None):
            raise TypeError(f"out is a {type(out[0]).__name__}, and results are {_kind(found)}")
        out[0][...] = found
        return out[0]

    def __eq__(self, other):
        # As of NumPy's arrays, nothing that has no numbers is equal to these, and to ask is no mistake.
        return super().__eq__(other) if _has_numbers(other) else NotImplemented

    def __ne__(self, other):
        return super().__ne__(other) if _has_numbers(other) else NotImplemented

    def __array_function__(self, function, types, arguments, options):
        name = f"numpy.{function.__name__}"
        written = arguments[0] if function in _WRITE and arguments else options.get("out")
        if isinstance(written, Array):
            raise TypeError(f"{name} writes values, and an exmy.Array has codes: x[...] = y writes numbers, rounded")
        if function in _MOVE or function in _JOIN or function in _LIKE:
            if not arguments:
                raise TypeError(f"{name} takes an exmy.Array by its place: {name}(x, ..)")
            wrong = {"out", "dtype"} & options.keys()
            if wrong and (function in _JOIN or isinstance(arguments[0], Array)):
                raise TypeError(
                    f"{name} with {' and '.join(sorted(wrong))} is no function of an exmy.Array: y[...] = {name}(..) "
                    f"writes its results, astype rounds them"
                )
        if function in _JOIN or function is np.where and len(arguments) == 3:
            first, parts = (), arguments[0]
            if function is np.where:
                first, parts = (np.asarray(arguments[0]),), arguments[1:]
            kinds = {str(one.format) if isinstance(one, Array) else type(one).__name__ for one in parts}
            if len(kinds) > 1:
                kinds = " and ".join(sorted(kinds))
                raise TypeError(f"{name} joins arrays of one format, not {kinds}")
            codes = [one.codes for one in parts]
            arguments = (*first, *codes) if first else (codes, *arguments[1:])
        elif function in _LIKE and isinstance(arguments[0], Array):
            return _like(arguments[0], _LIKE[function], *arguments[1:], **options)
        elif function in _MOVE and isinstance(arguments[0], Array):
            if any(isinstance(one, Array) for one in (*arguments[1:], *options.values())):
                raise TypeError(f"{name} is of one exmy.Array, and here are several")
            arguments = (arguments[0].codes, *arguments[1:])
        else:
            # All else is NumPy's, of values.
            return function(*map(_value, arguments), **{name: _value(one) for name, one in options.items()})
        moved = function(*arguments, **options)
        return _of(self.format, moved) if isinstance(moved, np.ndarray) else [_of(self.format, one) for one in moved]

    def __getitem__(self, key) -> Array:
        return _of(self.format, np.asarray(self.codes[key]))

    def __setitem__(self, key, x) -> None:
        """Writes numbers of the format, or others, which are rounded to it."""
        if isinstance(x, Array) and x.format != self.format:
            raise TypeError(f"x is {self.format}, and {x.format} is written to it: astype({str(self.format)!r}) rounds")
        self.codes[key] = x.codes if isinstance(x, Array) else self.format._encoded(x)

    shape = property(lambda self: self.codes.shape, doc="The lengths of the axes.")
    ndim = property(lambda self: self.codes.ndim, doc="How many axes there are.")
    size = property(lambda self: self.codes.size, doc="How many numbers there are.")
    nbytes = property(lambda self: self.codes.nbytes, doc="Bytes of the codes.")
    T = property(lambda self: self.transpose(), doc="The transpose, a view.")

    def reshape(self, *shape) -> Array:
        """The same numbers in another shape."""
        return _of(self.format, self.codes.reshape(*shape))

    def transpose(self, *axes) -> Array:
        """The axes in another order."""
        return _of(self.format, self.codes.transpose(*axes))

    def ravel(self) -> Array:
        """All numbers in a row."""
        return _of(self.format, self.codes.ravel())

    def copy(self) -> Array:
        """The same numbers in memory of their own."""
        return _of(self.format, self.codes.copy())

    def tolist(self):
        """The values as numbers of Python, in lists."""
        return np.asarray(self).tolist()

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __bool__(self) -> bool:
        return bool(_seen(self, "raz"))

    def __copy__(self) -> Array:
        return self.copy()

    def __repr__(self) -> str:
        values = np.array2string(np.asarray(self), separator=", ", prefix="exmy.Array(")
        return f"exmy.Array({values}, format={str(self.format)!r})"


def _has_numbers(x) -> bool:
    """Whether `x` may be meant as numbers, of which those of no format are refused with a reason."""
    if isinstance(x, (str, bytes)):
        return False
    return isinstance(x, (numbers.Number, list, tuple)) or hasattr(x, "__array__") or hasattr(x, "__dlpack__")


def _of(format: Format, codes: np.ndarray) -> Array:
    made = Array.__new__(Array)
    made.format, made.codes = format, codes
    return made


def _seen(x: Array, rounding: str) -> np.ndarray:
    """Values that are zero, infinite or NaN as the numbers are, which may lie beyond float64: those that `rounding`
    keeps from infinity (rtz), or from zero (raz)."""
    if isinstance(x, Array) and not x.format._fits_f32:
        x = apply("convert", x, to="f64", rounding=rounding)
    return np.asarray(x)


def _like(x: Array, fill, *arguments, **options) -> Array:
    """An array of the format and, unless another is given, the shape of `x`, full of one number, rounded once."""
    if fill is None:
        if arguments:
            fill, *arguments = arguments
        else:
            fill = options.pop("fill_value")
    if arguments:
        raise TypeError("an array like an exmy.Array has its format: astype rounds to another")
    made = _of(x.format, np.empty_like(x.codes, **options))
    made[...] = fill
    return made


def _value(x):
    """What NumPy's functions of values take of an argument: values, of arrays in lists and tuples, too."""
    if isinstance(x, Array):
        return np.asarray(x)
    return type(x)(map(_value, x)) if type(x) in (list, tuple) else x


def _kind(x) -> str:
    return f"an exmy.Array of {x.format}" if isinstance(x, Array) else "an array of truth values"


def apply(operation: str, *x, to=None, rounding=None, overflow=None, seed=None, stream="quantize"):
    """The results of an operation on arrays, each rounded once to the format `to`, else to that of all operands.

    >>> a, b = Array([1.5, 2.0], "e4m3"), Array([0.1, 7.0], "e5m2")
    >>> apply("mul", a, b, to="bf16", rounding="rtz")
    exmy.Array([ 0.140625, 14.      ], format='bf16')

    Operations are those of `exmy compute`: "add", "mulAdd", "fmod", "exp", "pow", "minimumNumber", "nextUp", "lt", ...
    Comparisons give arrays of truth values. Operands are arrays of any formats, or single numbers, which are rounded
    to the format of the first array; the exponents of "scaleB" are whole numbers. Stochastic modes need a `seed`:
    result `i` takes word `i` of the stream.
    """
    first = next((one for one in x if isinstance(one, Array)), None)
    if first is None:
        raise TypeError("no operand is an exmy.Array: exmy.Array(x, 'e4m3') makes one of numbers")
    name, powers = _text(operation, "operation", "add"), []
    if name.lower().replace("_", "").startswith("scaleb"):
        x, powers = x[:1], [_powers(one) for one in x[1:]]
    x = [_operand(one, first.format) for one in x]
    formats = [str(one.format) for one in x]
    if len(set(formats)) > 1 and to is None and not name.lower().startswith(("eq", "lt", "le", "total")):
        raise TypeError(
            f"{name} is of {' and '.join(formats)}, and a result of one format is needed: exmy.apply({name!r}, .., "
            f"to={formats[0]!r}), or astype"
        )
    of = formats[0] if len(set(formats)) == 1 else ",".join(formats)
    name = f"{of}_to_{Format(to)}" if name == "convert" else f"{of}_{name}" + (f"_to_{Format(to)}" if to else "")
    words = np.broadcast_arrays(*(one.codes for one in x), *powers)
    shape = words[0].shape
    words = [np.atleast_1d(one).astype(np.uint64, order="C") for one in words]
    rounding = None if rounding is None else _text(rounding, "rounding", "rtz")
    overflow = None if overflow is None else _text(overflow, "overflow", "sat-none")
    found = np.empty_like(words[0])
    format = _exmy.evaluate(name, rounding, overflow, _seed(seed), stream, words, found)
    found = found.reshape(shape)
    if format is None:
        return found.astype(bool)[()]
    format = Format(format)
    return _of(format, found.astype(_code_type(format.bits)))


def _powers(x) -> np.ndarray:
    """Exponents of "scaleB" as words of 32 bits; beyond these no format goes."""
    found = None if isinstance(x, Array) else np.asarray(x)
    if found is None or found.dtype.kind not in "iu":
        raise TypeError(
            f"scaleB is of numbers and exponents, which are whole numbers, not a {type(x).__name__}: "
            f"numpy.asarray(x).astype(int)"
        )
    return np.clip(found.astype(np.float64), 1 - 2**31, 2**31 - 1).astype(np.int64) & 0xFFFFFFFF


def _operand(x, format: Format) -> Array:
    if isinstance(x, Array):
        return x
    if isinstance(x, numbers.Real):
        return Array(x, format)
    raise TypeError(
        f"an operand is a {type(x).__name__}, and an exmy.Array or a single number is needed: "
        f"exmy.Array(x, {str(format)!r}) rounds others"
    )
