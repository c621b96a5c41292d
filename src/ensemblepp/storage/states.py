"""The state of a simulation as plain data: a table of JSON, and arrays. Nothing that is read back can run code.

Like a pickle, it keeps which parts are one and the same object. Unlike a pickle, it calls nothing but classes that a fresh
simulation of the same specification is made of (`Parts` collects them), names no function that is not part of that, and makes
bare objects of no other classes than those and the ones of loaded modules of this package and of the user's. Anything else is
refused, when a state is written and again when one is read.
"""

from __future__ import annotations

import copyreg
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

#: Classes of Python that any state may hold.
_PLAIN = {
    kind.__qualname__: kind
    for kind in (
        *(bool, int, float, complex, str, bytearray, list, tuple, dict, set, frozenset, range, slice),
        *(deque, OrderedDict, defaultdict),
    )
}

_BIT_GENERATORS = {
    kind.__name__: kind for kind in (np.random.SFC64, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.MT19937)
}


class UnstorableError(Exception):
    """A state holds what has no plain form, or what a fresh simulation does not hold."""


class Parts:
    """The classes, functions and methods that a fresh simulation is made of, by the places that states name them by.

    Raises:
        UnstorableError: there is no plain form of something in it.
    """

    def __init__(self, fresh: Any) -> None:
        self._places: dict[str, Any] = {}
        self._methods: set[str] = set()
        self._collecting = True
        pack(fresh, self)
        self._collecting = False

    def place(self, value: type | Callable, bare: bool = False) -> str:
        """The place of a class or function; `bare` is a class of which an object is made without calling it."""
        if _PLAIN.get(value.__qualname__) is value:
            return value.__qualname__
        place = f"{value.__module__}:{value.__qualname__}"
        if self._collecting and _at(place) is value:
            self._places[place] = value
        if self.at(place, bare) is not value:
            raise UnstorableError(f"{place} is not what is found there")
        return place

    def at(self, place: str, bare: bool = False) -> Any:
        """The class or function of a place."""
        found = _PLAIN.get(place) or self._places.get(place)
        if found is None and bare and _is_own(place.partition(":")[0]):
            found = _at(place)
        if found is None or (bare and not isinstance(found, type)):
            raise UnstorableError(f"{place} is no part of the run at its start")
        return found

    def method(self, owner: Any, name: str) -> Callable:
        """A method of an object."""
        place = f"{type(owner).__module__}:{type(owner).__qualname__}.{name}"
        if self._collecting:
            self._methods.add(place)
        if place not in self._methods:
            raise UnstorableError(f"{place} is no part of the run at its start")
        return getattr(owner, name)


def pack(state: Any, parts: Parts) -> tuple[list, list[np.ndarray]]:
    """A state as a table for JSON, and the arrays that it points to.

    Raises:
        UnstorableError: there is no plain form of something in it.
    """
    packer = _Packer(parts)
    table = packer.entry(state)
    return [table, packer.table], packer.arrays


def unpack(table: list, arrays: list[np.ndarray], parts: Parts) -> Any:
    """The state that `pack` made plain.

    Raises:
        UnstorableError: it holds what a fresh simulation does not.
    """
    entry, rows = table
    return _Unpacker(rows, arrays, parts).value(entry)


class _Packer:
    """Every object is one row of the table, however often it is met; a row is its kind and its entries.

    An entry is a plain value, or the number of a row in a list.
    """

    def __init__(self, parts: Parts) -> None:
        self.table: list[list] = []
        self.arrays: list[np.ndarray] = []
        self._parts = parts
        # objects stay alive while they are known by their addresses
        self._rows: dict[int, tuple[int, Any]] = {}
        self._storages: dict[int, tuple[list[int], Any]] = {}

    def entry(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if id(value) not in self._rows:
            # before its entries: they may lead back to it
            row: list = []
            self._rows[id(value)] = len(self.table), value
            self.table.append(row)
            row += self._row(value)
        return [self._rows[id(value)][0]]

    def _entries(self, values: Iterable) -> list:
        return [self.entry(value) for value in values]

    def _array(self, values: np.ndarray) -> int:
        if values.dtype.hasobject:
            raise UnstorableError("an array of objects")
        self.arrays.append(values)
        return len(self.arrays) - 1

    def _row(self, value: Any) -> list:
        kind = type(value)
        if kind is list or kind is tuple:
            return [kind.__name__, *self._entries(value)]
        if kind is dict:
            return ["dict", *self._entries(part for pair in value.items() for part in pair)]
        if kind is bytes:
            return ["bytes", value.hex()]
        if kind is np.ndarray or isinstance(value, np.generic):
            return ["array" if kind is np.ndarray else "scalar", self._array(np.asarray(value))]
        if isinstance(value, np.dtype):
            return ["numpy type", np.lib.format.dtype_to_descr(value)]
        if isinstance(value, np.random.Generator):
            return ["generator", self.entry(value.bit_generator)]
        if _BIT_GENERATORS.get(kind.__name__) is kind:
            return ["bit generator", kind.__name__, self.entry(value.seed_seq), self.entry(value.state)]
        if kind is np.random.SeedSequence:
            return ["seed sequence", self.entry(value.state)]
        if isinstance(value, types.FunctionType | type):
            return ["place", self._parts.place(value)]
        if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType):
            return ["place", self._parts.place(value)]
        if isinstance(value, types.MethodType | types.BuiltinMethodType):
            if self._parts.method(value.__self__, value.__name__) != value:
                raise UnstorableError(f"{value.__name__} is not found under its name")
            return ["method", self.entry(value.__self__), value.__name__]
        torch = sys.modules.get("torch")
        if torch is not None:
            if kind in (torch.Tensor, torch.nn.Parameter):
                return self._tensor(value, torch)
            if isinstance(value, torch.dtype):
                return ["torch type", str(value).removeprefix("torch.")]
            if kind is torch.Generator:
                return ["torch generator", str(value.device), self._array(value.get_state().numpy())]
        return self._object(value)

    def _tensor(self, value: Any, torch: types.ModuleType) -> list:
        if value.layout is not torch.strided or (value.grad_fn is not None):
            raise UnstorableError("a tensor that is sparse or part of a graph")
        # tensors that are parts of others stay so
        storage = value.untyped_storage()
        address = storage._cdata
        if address not in self._storages:
            whole = torch.empty(0, dtype=torch.uint8, device=value.device).set_(storage)
            self._storages[address] = [len(self.table)], storage
            self.table.append(["storage", self._array(whole.cpu().numpy()), str(value.device)])
        return [
            type(value).__name__,
            self._storages[address][0],
            str(value.dtype).removeprefix("torch."),
            value.storage_offset(),
            list(value.shape),
            list(value.stride()),
            value.requires_grad,
        ]

    def _object(self, value: Any) -> list:
        """As it says of itself for a pickle: a class, arguments, and what it holds."""
        try:
            reduced = value.__reduce_ex__(2)
        except Exception as error:  # a class says of itself how it is stored, and may raise anything
            raise UnstorableError(f"{type(value).__qualname__}: {error}") from error
        if isinstance(reduced, str):
            raise UnstorableError(f"{reduced}: an object that stands for itself")
        make, arguments, state, listed, paired = (*reduced, None, None, None)[:5]
        bare = make is copyreg.__newobj__
        if bare:
            make, *arguments = arguments
        if make is not type(value):
            raise UnstorableError(f"{type(value).__qualname__}: made by {make}")
        return [
            "new" if bare else "call",
            self._parts.place(make, bare),
            self._entries(arguments),
            self.entry(state),
            self._entries(listed or ()),
            self._entries(part for pair in paired or () for part in pair),
        ]


class _Unpacker:
    """Rows of a table back to objects, each once."""

    def __init__(self, table: list[list], arrays: list[np.ndarray], parts: Parts) -> None:
        self._table, self._arrays, self._parts = table, arrays, parts
        self._made: dict[int, Any] = {}
        self._kinds: dict[str, Callable] = {
            "list": self._list,
            "tuple": self._tuple,
            "dict": self._dict,
            "bytes": self._bytes,
            "array": self._array,
            "scalar": self._scalar,
            "numpy type": self._numpy_type,
            "generator": self._generator,
            "bit generator": self._bit_generator,
            "seed sequence": self._seed_sequence,
            "place": self._place,
            "method": self._method,
            "storage": self._storage,
            "Tensor": self._tensor,
            "Parameter": self._parameter,
            "torch type": self._torch_type,
            "torch generator": self._torch_generator,
            "new": self._new,
            "call": self._call,
        }

    def value(self, entry: Any) -> Any:
        if not isinstance(entry, list):
            return entry
        (number,) = entry
        if number not in self._made:
            kind, *row = self._table[number]
            self._made[number] = self._kinds[kind](number, *row)
        return self._made[number]

    def _values(self, entries: Iterable) -> list:
        return [self.value(entry) for entry in entries]

    def _list(self, number: int, *row: Any) -> list:
        self._made[number] = made = []
        made += self._values(row)
        return made

    def _tuple(self, number: int, *row: Any) -> tuple:
        return tuple(self._values(row))

    def _dict(self, number: int, *row: Any) -> dict:
        self._made[number] = made = {}
        made.update(_pairs(self._values(row)))
        return made

    def _bytes(self, number: int, text: str) -> bytes:
        return bytes.fromhex(text)

    def _array(self, number: int, place: int) -> np.ndarray:
        return self._arrays[place]

    def _scalar(self, number: int, place: int) -> np.generic:
        return self._arrays[place][()]

    def _numpy_type(self, number: int, described: Any) -> np.dtype:
        return np.lib.format.descr_to_dtype(described)

    def _generator(self, number: int, source: Any) -> np.random.Generator:
        return np.random.Generator(self.value(source))

    def _bit_generator(self, number: int, name: str, seed: Any, state: Any) -> np.random.BitGenerator:
        made = _BIT_GENERATORS[name](self.value(seed))
        made.state = self.value(state)
        return made

    def _seed_sequence(self, number: int, state: Any) -> np.random.SeedSequence:
        return np.random.SeedSequence(**self.value(state))

    def _place(self, number: int, place: str) -> Any:
        return self._parts.at(place)

    def _method(self, number: int, owner: Any, name: str) -> Callable:
        return self._parts.method(self.value(owner), name)

    def _storage(self, number: int, place: int, device: str) -> Any:
        import torch

        # a copy, so that it lies where torch would have put it
        return torch.from_numpy(self._arrays[place]).to(device, copy=True).untyped_storage()

    def _tensor(
        self, number: int, storage: Any, dtype: str, offset: int, shape: list[int], stride: list[int], trained: bool
    ) -> Any:
        import torch

        whole = self.value(storage)
        made = torch.empty(0, dtype=getattr(torch, dtype), device=whole.device).set_(whole, offset, shape, stride)
        return made.requires_grad_(trained)

    def _parameter(self, number: int, *row: Any) -> Any:
        import torch

        made = self._tensor(number, *row)
        return torch.nn.Parameter(made.detach(), requires_grad=made.requires_grad)

    def _torch_type(self, number: int, name: str) -> Any:
        import torch

        return getattr(torch, name)

    def _torch_generator(self, number: int, device: str, place: int) -> Any:
        import torch

        made = torch.Generator(device)
        made.set_state(torch.from_numpy(self._arrays[place]))
        return made

    def _new(self, number: int, place: str, arguments: list, state: Any, listed: list, paired: list) -> Any:
        kind = self._parts.at(place, bare=True)
        return self._fill(number, kind.__new__(kind, *self._values(arguments)), state, listed, paired)

    def _call(self, number: int, place: str, arguments: list, state: Any, listed: list, paired: list) -> Any:
        kind = self._parts.at(place)
        if not isinstance(kind, type):
            raise UnstorableError(f"{place} is no class")
        return self._fill(number, kind(*self._values(arguments)), state, listed, paired)

    def _fill(self, number: int, made: Any, state: Any, listed: list, paired: list) -> Any:
        """What an object held, put into it as a pickle would."""
        self._made[number] = made
        for value in self._values(listed):
            made.append(value)
        for key, value in _pairs(self._values(paired)).items():
            made[key] = value
        found = self.value(state)
        if found is not None:
            if hasattr(made, "__setstate__"):
                made.__setstate__(found)
            else:
                fields, slots = found if isinstance(found, tuple) else (found, None)
                if fields:
                    made.__dict__.update(fields)
                for name, value in (slots or {}).items():
                    setattr(made, name, value)
        return made


def _pairs(values: list) -> Mapping[Any, Any]:
    return dict(zip(values[::2], values[1::2], strict=True))


def _at(place: str) -> Any:
    """What stands at a place, without importing anything; None if there is nothing."""
    module, _, name = place.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _is_own(module: str) -> bool:
    """Whether a loaded module is of this package, or the user's: neither Python's nor installed."""
    top, file = module.partition(".")[0], getattr(sys.modules.get(module), "__file__", None)
    if file is None or top in sys.stdlib_module_names:
        return False
    return top == __name__.partition(".")[0] or not {"site-packages", "dist-packages"} & set(Path(file).parts)
