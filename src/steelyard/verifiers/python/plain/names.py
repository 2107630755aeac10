"""What plain answers may name: modules and what is in them, methods of the language, functions that set nothing for others."""

from __future__ import annotations

import ast
import re
import sys
import unittest
from functools import cache
from importlib import import_module
from types import ModuleType

LISTED_MODULES: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(
        ("__future__", "base64", "bisect", "cmath", "collections", "collections.abc", "datetime", "fractions")
    ),
    **dict.fromkeys(("hashlib", "heapq", "itertools", "json", "math", "numbers", "operator", "os.path", "queue", "re")),
    **dict.fromkeys(("statistics", "string", "struct", "textwrap", "typing", "weakref", "zlib")),
    "abc": frozenset({"ABC", "ABCMeta", "abstractmethod"}),
    "copy": frozenset({"copy", "deepcopy"}),
    "dataclasses": frozenset(
        {"asdict", "astuple", "dataclass", "field", "is_dataclass", "replace", "InitVar", "KW_ONLY"}
    ),
    "enum": frozenset({"Enum", "Flag", "IntEnum", "IntFlag", "StrEnum", "auto", "unique"}),
    "functools": frozenset(
        {
            *("cache", "cached_property", "cmp_to_key", "lru_cache", "partial", "partialmethod", "reduce"),
            *("singledispatch", "singledispatchmethod", "total_ordering", "wraps"),
        }
    ),
    "json.decoder": frozenset({"JSONDecodeError"}),
    "numpy": frozenset(
        {
            *(
                "abs",
                "absolute",
                "add",
                "all",
                "allclose",
                "any",
                "arange",
                "arccos",
                "arcsin",
                "arctan",
                "arctan2",
                "argmax",
            ),
            *(
                "argmin",
                "argsort",
                "argwhere",
                "around",
                "array",
                "array_equal",
                "asarray",
                "average",
                "bincount",
                "bool_",
            ),
            *(
                "ceil",
                "clip",
                "column_stack",
                "concatenate",
                "convolve",
                "corrcoef",
                "cos",
                "count_nonzero",
                "cov",
                "cross",
            ),
            *(
                "cumprod",
                "cumsum",
                "diag",
                "diff",
                "divide",
                "dot",
                "e",
                "empty",
                "equal",
                "exp",
                "eye",
                "fill_diagonal",
                "flatnonzero",
                "flip",
            ),
            *(
                "float32",
                "float64",
                "floor",
                "full",
                "histogram",
                "hstack",
                "hypot",
                "identity",
                "inf",
                "int32",
                "int64",
            ),
            *(
                "integer",
                "interp",
                "intersect1d",
                "isclose",
                "isfinite",
                "isinf",
                "isnan",
                "linspace",
                "log",
                "log10",
                "log2",
            ),
            *(
                "logical_and",
                "logical_not",
                "logical_or",
                "matmul",
                "max",
                "maximum",
                "mean",
                "median",
                "meshgrid",
                "min",
            ),
            *(
                "minimum",
                "mod",
                "multiply",
                "nan",
                "nan_to_num",
                "ndarray",
                "newaxis",
                "nonzero",
                "number",
                "ones",
                "outer",
            ),
            *(
                "percentile",
                "pi",
                "power",
                "prod",
                "quantile",
                "ravel",
                "repeat",
                "reshape",
                "roll",
                "round",
                "searchsorted",
            ),
            *(
                "sign",
                "sin",
                "sort",
                "split",
                "sqrt",
                "square",
                "squeeze",
                "stack",
                "std",
                "subtract",
                "sum",
                "take",
                "tan",
            ),
            *(
                "tile",
                "trace",
                "transpose",
                "tril",
                "triu",
                "uint8",
                "unique",
                "var",
                "vstack",
                "where",
                "zeros",
                "zeros_like",
            ),
        }
    ),
    "numpy.fft": frozenset({"fft", "fftfreq", "ifft", "rfft"}),
    "numpy.linalg": frozenset(
        {"LinAlgError", "det", "eig", "eigh", "eigvals", "inv", "lstsq", "norm", "qr", "solve", "svd"}
    ),
    "numpy.random": frozenset({"default_rng"}),
    "pandas": frozenset(
        {
            *(
                "Categorical",
                "DataFrame",
                "Index",
                "MultiIndex",
                "NA",
                "NaT",
                "Series",
                "Timedelta",
                "Timestamp",
                "concat",
            ),
            *(
                "crosstab",
                "cut",
                "date_range",
                "get_dummies",
                "isna",
                "isnull",
                "melt",
                "merge",
                "notna",
                "notnull",
                "pivot",
            ),
            *("pivot_table", "qcut", "read_csv", "to_datetime", "to_numeric", "unique"),
        }
    ),
    "uuid": frozenset({"NAMESPACE_DNS", "NAMESPACE_URL", "UUID", "uuid1", "uuid3", "uuid4", "uuid5"}),
    "asyncio": frozenset(
        {
            *("CancelledError", "Condition", "Event", "Future", "Lock", "Queue", "Semaphore", "Task", "TaskGroup"),
            *("TimeoutError", "as_completed", "create_task", "ensure_future", "gather", "iscoroutinefunction", "run"),
            *("shield", "sleep", "timeout", "to_thread", "wait", "wait_for"),
        }
    ),
    "concurrent.futures": frozenset({"ThreadPoolExecutor", "as_completed"}),
    "contextlib": frozenset(
        {
            *("AbstractContextManager", "AsyncExitStack", "ContextDecorator", "ExitStack", "aclosing"),
            *("asynccontextmanager", "closing", "contextmanager", "nullcontext", "suppress"),
        }
    ),
    "contextvars": frozenset({"ContextVar"}),
    "csv": frozenset({"DictReader", "DictWriter", "reader", "writer"}),
    "decimal": frozenset({"Decimal", "InvalidOperation", "ROUND_DOWN", "ROUND_HALF_EVEN", "ROUND_HALF_UP", "ROUND_UP"}),
    # a signature shows the defaults of functions of the tests
    "inspect": frozenset({"isawaitable", "iscoroutine", "iscoroutinefunction", "isgenerator"}),
    "io": frozenset({"BytesIO", "StringIO"}),
    "os": frozenset({"path"}),
    "pathlib": frozenset({"Path", "PurePath", "PurePosixPath"}),
    "random": frozenset(
        {"Random", "choice", "choices", "gauss", "randint", "random", "randrange", "sample", "shuffle", "uniform"}
    ),
    "sys": frozenset({"float_info", "getsizeof", "maxsize", "setrecursionlimit", "stderr", "stdin", "stdout"}),
    "threading": frozenset({"Condition", "Event", "Lock", "RLock", "Semaphore", "Thread", "Timer", "local"}),
    "time": frozenset({"monotonic", "perf_counter", "sleep", "time"}),
    "types": frozenset({"MappingProxyType", "SimpleNamespace"}),
    "warnings": frozenset({"warn"}),
}
"""Modules that answers may import, with those of their names that set nothing for others; None stands for all that
they document (`listed_names`)."""
LISTED_BASES = frozenset(
    {
        *("ABC", "Enum", "Flag", "Generic", "IntEnum", "IntFlag", "NamedTuple", "Protocol", "StrEnum", "TypedDict"),
        *("abc.ABC", "enum.Enum", "enum.IntEnum", "object", "typing.NamedTuple", "typing.Protocol"),
    }
)
"""What classes of an answer may inherit from, besides exceptions and each other."""
REACHING_BUILTINS = frozenset(
    {
        *("__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "locals", "setattr"),
        "vars",
    }
)
"""Builtin functions that reach what has no name in the source."""
REACHING_ATTRIBUTES = frozenset(
    {
        *("Formatter", "ForwardRef", "attrgetter", "clear_overloads", "dataclass_transform", "evaluate_forward_ref"),
        *(
            "get_args",
            "get_overloads",
            "get_type_hints",
            "methodcaller",
            "mro",
            "no_type_check",
            "no_type_check_decorator",
        ),
        *("register",),
        *("update_abstractmethods", "update_wrapper"),
        # of numpy and pandas
        *("core", "ctypeslib", "lib", "options", "reset_option", "seed", "set_option", "set_printoptions", "set_state"),
        *(
            "set_string_function",
            "setbufsize",
            "seterr",
            "seterrcall",
            "testing",
            "ctypes",
            "eval",
            "obj",
            "read_pickle",
            "tofile",
        ),
    }
)
"""What reaches attributes by names that it is given, or sets something for all."""
LISTED_DUNDERS = frozenset(
    {
        *(
            "__add__",
            "__bool__",
            "__call__",
            "__class__",
            "__contains__",
            "__doc__",
            "__enter__",
            "__eq__",
        ),
        *(
            "__exit__",
            "__ge__",
            "__getitem__",
            "__gt__",
            "__hash__",
            "__init__",
            "__iter__",
            "__le__",
            "__len__",
            "__lt__",
        ),
        *(
            "__mul__",
            "__name__",
            "__ne__",
            "__new__",
            "__next__",
            "__qualname__",
            "__radd__",
            "__repr__",
        ),
        *(
            "__rmul__",
            "__slots__",
            "__str__",
            "__sub__",
            "__aenter__",
            "__aexit__",
            "__aiter__",
            "__anext__",
        ),
        *("__cause__", "__context__", "__notes__", "__version__", "__author__", "__all__", "__rsub__", "__truediv__"),
    }
)
"""Names with two underscores that lead to nothing but the object itself."""
LISTED_METHODS = frozenset(
    {
        *(
            "__abs__",
            "__add__",
            "__aenter__",
            "__aexit__",
            "__aiter__",
            "__and__",
            "__anext__",
            "__await__",
            "__bool__",
        ),
        *(
            "__bytes__",
            "__call__",
            "__ceil__",
            "__complex__",
            "__contains__",
            "__copy__",
            "__deepcopy__",
        ),
        *(
            "__del__",
            "__delattr__",
            "__delete__",
            "__delitem__",
            "__dir__",
            "__divmod__",
            "__enter__",
            "__eq__",
            "__exit__",
        ),
        *(
            "__float__",
            "__floor__",
            "__floordiv__",
            "__format__",
            "__ge__",
            "__getattr__",
            "__getitem__",
            "__gt__",
        ),
        *("__hash__", "__iadd__", "__iand__", "__imul__", "__index__", "__init__", "__int__", "__invert__", "__ior__"),
        *(
            "__isub__",
            "__iter__",
            "__itruediv__",
            "__ixor__",
            "__le__",
            "__len__",
            "__length_hint__",
            "__lshift__",
            "__lt__",
        ),
        *(
            "__matmul__",
            "__missing__",
            "__mod__",
            "__mul__",
            "__ne__",
            "__neg__",
            "__new__",
            "__next__",
            "__or__",
            "__pos__",
        ),
        *(
            "__post_init__",
            "__pow__",
            "__radd__",
            "__rand__",
            "__repr__",
            "__reversed__",
            "__rfloordiv__",
            "__rmatmul__",
        ),
        *(
            "__rmod__",
            "__rmul__",
            "__ror__",
            "__round__",
            "__rpow__",
            "__rshift__",
            "__rsub__",
            "__rtruediv__",
            "__rxor__",
        ),
        *(
            "__set__",
            "__setattr__",
            "__setitem__",
            "__str__",
            "__sub__",
            "__truediv__",
            "__trunc__",
            "__xor__",
        ),
        *(
            "__ifloordiv__",
            "__ilshift__",
            "__imatmul__",
            "__imod__",
            "__ipow__",
            "__irshift__",
            "__rdivmod__",
            "__rlshift__",
        ),
        *("__rrshift__",),
    }
)
"""What classes of an answer may define for the language; others reach an object's state, or say what an object is."""
LISTED_CONSTANTS = frozenset(
    {"__all__", "__author__", "__doc__", "__hash__", "__match_args__", "__slots__", "__version__"}
)
LISTED_PRIVATE = frozenset({"_asdict", "_fields", "_make", "_replace"})
SETTERS = frozenset(
    {"abstractmethod", "dataclass", "final", "override", "runtime_checkable", "total_ordering", "unique", "wraps"}
)
"""Functions of the library that set attributes of what they decorate."""
METHOD_DECORATORS = frozenset(
    {
        *(
            "abstractmethod",
            "asynccontextmanager",
            "cache",
            "cached_property",
            "classmethod",
            "contextmanager",
            "final",
        ),
        *("lru_cache", "override", "property", "staticmethod"),
    }
)
"""What keeps a method for itself."""
FRAME_ATTRIBUTES = re.compile(r"(?:ag|cr|f|gi|tb)_\w+")
"""What leads from a generator, a coroutine or a traceback to the frames of others."""
TEXT_THAT_REACHES = re.compile(r"\{[^}]*__")
"""A format that reads attributes: `"{0.__globals__}"`."""
ANNOTATION_FIELDS = ("annotation", "returns")
ANNOTATION_PARTS = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.BitOr, ast.Load),
    *(ast.Starred, ast.UnaryOp, ast.USub),
)
"""What annotations are made of, if they are nothing but that."""
BUILTIN_MEANINGS = frozenset(
    {"classmethod", "isinstance", "issubclass", "object", "property", "staticmethod", "super", "type"}
)
"""Builtins by which it is decided what an answer does: it gives these names no other meaning."""
LIBRARY_MODULES = (
    *(
        "bisect",
        "cmath",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
    ),
    *("functools", "heapq", "io", "itertools", "json", "math", "operator", "pathlib", "random", "re", "statistics"),
    *("string", "time", "typing"),
)
"""Modules that tests take names of without importing them."""
USUAL_MODULE_NAMES = frozenset({"np", "numpy", "pandas", "pd", "plt", "pytest", "scipy"})


@cache
def listed_names(module: str) -> frozenset[str]:
    """What answers may take from a listed module: what it documents, but no module in it and no table."""
    listed = LISTED_MODULES[module]
    if listed is not None:
        return listed
    found = import_module(module)
    names = (name for name in getattr(found, "__all__", dir(found)) if not name.startswith("_"))
    kept = {name for name in names if not isinstance(getattr(found, name), ModuleType | dict | list | set)}
    return frozenset(kept) - REACHING_ATTRIBUTES


@cache
def library_names() -> frozenset[str]:
    """Names that tests mean the library by."""
    names = {name for module in LIBRARY_MODULES for name in dir(import_module(module)) if not name.startswith("_")}
    return frozenset(names | sys.stdlib_module_names | USUAL_MODULE_NAMES)


@cache
def shared_functions() -> frozenset[str]:
    """Names of functions and classes that an answer would change for all by setting them in a module or in a test case."""
    modules = [vars(import_module(module)) for module in LIBRARY_MODULES]
    return frozenset(
        {name for names in modules for name, value in names.items() if callable(value)} | test_case_names()
    )


@cache
def test_case_names() -> frozenset[str]:
    """What a test case asserts by; answers have such attributes of their own as `id`."""
    return frozenset(dir(unittest.TestCase)) - dir_of_objects() - {"id", "run", "debug"}


@cache
def private_names() -> frozenset[str]:
    """Attributes with an underscore that classes of the library have."""
    classes = [value for module in LIBRARY_MODULES for value in vars(import_module(module)).values()]
    return frozenset(
        name for value in classes if isinstance(value, type) for name in dir(value) if name.startswith("_")
    )


def dir_of_objects() -> frozenset[str]:
    """What every class has."""
    return frozenset(dir(object)) | {"__dict__", "__module__", "__weakref__", "__call__"}
