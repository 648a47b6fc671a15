"""The mathematical functions of a device's library, which the interpreter does not run.

They are those of NVIDIA's libdevice and of AMD's, or, where triton-ascend 3.2 takes Triton's place,
of its own.
"""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pytest_tritonverify.interpreter import names
from pytest_tritonverify.interpreter.patching import missing, replace

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from numpy.typing import NDArray

    _Function = Callable[..., NDArray[Any]]

LIBRARIES = (
    "triton.language.extra.cuda.libdevice",
    "triton.language.extra.hip.libdevice",
    "triton.language.extra.ascend.libdevice",
)
# Triton's compiler looks its functions up in the library of the device.
_STANDS_FOR_ANY = "triton.language.extra.libdevice"
_PREFIXES = ("__nv_", "__hmf_", "__ocml_", "__triton_hip_")


def _through_torch(function: Callable[..., torch.Tensor]) -> _Function:
    def compute(*arrays: NDArray[Any]) -> NDArray[Any]:
        return function(*(torch.from_numpy(np.array(x)) for x in arrays)).numpy()

    return compute


def _each(function: Callable[..., float]) -> _Function:
    each: _Function = np.vectorize(function, otypes=[np.float64])
    return each


def _log_gamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):
        return math.inf  # at a pole, or beyond float64


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 else math.nan


def _remainder(x: float, y: float) -> float:
    try:
        return math.remainder(x, y)
    except ValueError:
        return math.nan


def _half_away(x: NDArray[Any]) -> NDArray[Any]:
    size = np.abs(x)
    nearest: NDArray[Any] = np.copysign(np.trunc(size) + (size % 1 >= 0.5), x)  # noqa: PLR2004 - one half
    return nearest


# By what is left of a symbol without its prefix and the mark of its type.
_FUNCTIONS: dict[str, _Function] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2)),
    "cyl_bessel_i0": _through_torch(torch.special.i0),
    "cyl_bessel_i1": _through_torch(torch.special.i1),
    "erf": _through_torch(torch.erf),
    "erfc": _through_torch(torch.erfc),
    "erfcinv": lambda x: -_through_torch(torch.special.ndtri)(x / 2) / math.sqrt(2),
    "erfcx": _through_torch(torch.special.erfcx),
    "erfinv": _through_torch(torch.erfinv),
    "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "fabs": np.abs,
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x + y), np.nan, 0.0)),
    "fast_fdivide": np.divide,
    "floor": np.floor,
    "fma": lambda x, y, z: x * y + z,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "ilogb": lambda x: np.frexp(x)[1] - 1,
    "j0": _through_torch(torch.special.bessel_j0),
    "j1": _through_torch(torch.special.bessel_j1),
    "ldexp": np.ldexp,
    "lgamma": _each(_log_gamma),
    "llrint": np.rint,
    "llround": _half_away,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "logb": lambda x: np.frexp(x)[1] - 1.0,
    "nearbyint": np.rint,
    "nextafter": np.nextafter,
    "normcdf": _through_torch(torch.special.ndtr),
    "normcdfinv": _through_torch(torch.special.ndtri),
    "pow": np.power,
    "powi": np.power,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "recip": lambda x: 1 / x,
    "relu": lambda x: np.maximum(x, 0),
    "remainder": _each(_remainder),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "rint": np.rint,
    "round": _half_away,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "saturate": lambda x: np.where(x > 0, np.minimum(x, 1.0), 0.0),
    "scalbn": np.ldexp,
    "sin": np.sin,
    "sinh": np.sinh,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2)),
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "tgamma": _each(_gamma),
    "trunc": np.trunc,
    "y0": _through_torch(torch.special.bessel_y0),
    "y1": _through_torch(torch.special.bessel_y1),
    "isfinite": np.isfinite,
    "finite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "signbit": np.signbit,
    "abs": np.abs,
    "llabs": np.abs,
    "fadd_rn": np.add,
    "fsub_rn": np.subtract,
    "fmul_rn": np.multiply,
    "fdiv_rn": np.divide,
    "frcp_rn": lambda x: 1 / x,
    "fsqrt_rn": np.sqrt,
    "frsqrt_rn": lambda x: 1 / np.sqrt(x),
    "dadd_rn": np.add,
    "dsub_rn": np.subtract,
    "dmul_rn": np.multiply,
    "ddiv_rn": np.divide,
    "drcp_rn": lambda x: 1 / x,
    "dsqrt_rn": np.sqrt,
}
# Less exact on a device, and no less right.
_FUNCTIONS |= {
    f"fast_{name}": _FUNCTIONS[name]
    for name in ("cos", "exp", "exp10", "log", "log10", "log2", "pow", "sin", "tan", "tanh")
}
# What AMD's calls otherwise.
_FUNCTIONS |= {
    "i0": _FUNCTIONS["cyl_bessel_i0"],
    "i1": _FUNCTIONS["cyl_bessel_i1"],
    "iabs": np.abs,
    "pown": np.power,
}
_TYPE_MARKS = ("_f32", "_f64", "Dh", "f", "d")


def obstacle(interpreter: Any) -> str | None:
    """Say what keeps libdevice from being run in this version of Triton, if anything."""
    absent = missing(interpreter, ("InterpreterBuilder", "TensorHandle", "_get_np_dtype"))
    if not absent:
        absent = missing(interpreter.InterpreterBuilder, ("create_extern_elementwise",))
    if absent:
        return f"its interpreter has no {', '.join(absent)}"
    try:
        importlib.import_module(_STANDS_FOR_ANY)
    except ImportError as error:
        return str(error)
    if not _all_installed():
        return f"there is no {' and no '.join(LIBRARIES)}"
    return names.obstacle(interpreter)


def installed() -> ModuleType | None:
    """Return the library that this version of Triton has, the first one of several, if any."""
    return next(iter(_all_installed()), None)


def _all_installed() -> list[ModuleType]:
    found = []
    for name in LIBRARIES:
        try:
            found.append(importlib.import_module(name))
        except ImportError:
            continue
    return found


def install(interpreter: Any) -> None:
    """Correct the interpreter's module and the library in place, without an `obstacle`."""
    libraries = _all_installed()
    stubs = importlib.import_module(_STANDS_FOR_ANY)
    for library in libraries:
        names.bind(interpreter, library)
    for name in list(vars(stubs)):
        if not name.startswith("_") and callable(getattr(libraries[0], name, None)):
            setattr(stubs, name, getattr(libraries[0], name))

    def make(original: Any) -> Any:
        def create_extern_elementwise(
            self: Any, lib: Any, path: Any, symbol: str, arguments: Any, kind: Any, *pure: Any
        ) -> Any:
            function = named(symbol)
            if function is None:
                return original(self, lib, path, symbol, arguments, kind, *pure)
            dtype = interpreter._get_np_dtype(kind)  # noqa: SLF001 - the module is what is corrected
            wide = [_wide(argument.data, function) for argument in arguments]
            return interpreter.TensorHandle(np.asarray(function(*wide)).astype(dtype), kind.scalar)

        return create_extern_elementwise

    replace(interpreter.InterpreterBuilder, "create_extern_elementwise", make)


def named(symbol: str) -> _Function | None:
    """Return what a symbol of the library computes, None if that is not known here."""
    prefix = next((one for one in _PREFIXES if symbol.startswith(one)), None)
    if prefix is None:
        return None
    name = symbol.removeprefix(prefix)
    mark = next((mark for mark in _TYPE_MARKS if name.endswith(mark)), "")
    # `__nv_tanhf` and `__ocml_tanh_f32` take float32, `__nv_isnand` float64, `__hmf_tanhDh` half.
    return _FUNCTIONS.get(name) or _FUNCTIONS.get(name.removesuffix(mark))


def _wide(values: NDArray[Any], function: _Function) -> NDArray[Any]:
    """Compute in float64 and round once: at least as exact as any device."""
    own = values.dtype != np.float32 or function is np.nextafter
    return values if own else values.astype(np.float64)
