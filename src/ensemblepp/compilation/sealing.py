"""The parts of the compilation that are made of numba's internals: sealed libraries, and the cache that keeps them."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import pickle
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import llvmlite.binding as llvm
import numba
from llvmlite.binding import newpassmanagers
from numba.core.caching import CompileResultCacheImpl, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.serialize import dumps

from ensemblepp.compilation.keys import Key
from ensemblepp.storage import leftovers

#: How symbols begin that hold a function's Python objects; numba defines one for every function.
_ENVIRONMENT = "_ZN08NumbaEnv"

_CHECKSUM_BYTES = hashlib.sha256().digest_size


def compiled(function: Callable, options: dict, key: Key):
    """`function` as `numba.njit` makes it, compiled into sealed libraries that are kept on disk under names made by `key`."""
    dispatcher = numba.njit(**options, pipeline_class=type("SealingCompiler", (_SealingCompiler,), {"key": key}))(function)
    try:
        folder = CompileResultCacheImpl(function).locator.get_cache_path()
    except RuntimeError:  # no folder can be written to
        return dispatcher
    dispatcher._cache = SealedCache(function, key, Path(folder))
    return dispatcher


class SealedLibrary(JITCodeLibrary):
    """A library whose only visible symbols are a function's entries and its environment; what it calls is inside and local."""

    def finalize(self) -> None:
        # what it calls is linked in by the method overridden; until then all that is visible is its own
        self._own = {
            value.name
            for value in (*self._final_module.functions, *self._final_module.global_variables)
            if not value.is_declaration and value.linkage in (llvm.Linkage.external, llvm.Linkage.common)
        }
        super().finalize()

    def _optimize_final_module(self) -> None:
        # sealed after it is optimised: the optimiser sees what it would see without a cache, and makes the same code
        super()._optimize_final_module()
        module = self._final_module
        for value in (*module.functions, *module.global_variables):
            if not value.is_declaration and value.name not in self._own:
                value.linkage = llvm.Linkage.internal
        passes = newpassmanagers.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, self._codegen._pass_builder())
        foreign = {value.name for value in module.global_variables if value.name.startswith(_ENVIRONMENT)} - self._own
        if foreign:
            # it would have to be filled in as the object is loaded, by its name
            raise NotImplementedError(f"{self.name} calls functions that need Python objects: {', '.join(sorted(foreign))}")


class InnerLibrary(JITCodeLibrary):
    """What a sealed library takes in: linked into it as it is, optimised there, and never run by itself.

    numba would optimise every function once by itself and once in each of its callers, and make machine code of it both times.
    """

    @property
    def codegen(self):
        return _WithoutEnvironments(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        # a call from Python comes here with a closure, which is "not callable": a TypeError, where 0 would be a crash
        return ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value

    def _optimize_functions(self, module) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _WithoutEnvironments:
    """numba's code generator for a library that is not loaded, and in which no object can be put."""

    def __init__(self, codegen) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str):
        return getattr(self._codegen, name)

    def set_env(self, env_name: str, env) -> None:
        pass


@contextlib.contextmanager
def _inner_libraries(codegen) -> Iterator[None]:
    """Whatever is compiled meanwhile goes into `InnerLibrary`s; numba's lock lets one thread compile at a time."""
    before = codegen._library_class
    codegen._library_class = InnerLibrary
    try:
        yield
    finally:
        codegen._library_class = before


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """No search for garbage among the many objects that a compiler makes and keeps: a seventh of all it does."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _SealingCompiler(Compiler):
    """numba's compiler, but into a sealed library, and with the key's digest in names instead of the process's counter."""

    key: Key

    def _compile_bytecode(self):
        state = self.state
        codegen = state.targetctx.codegen()
        state.func_id.unique_id = self.key.entry(state.args, codegen.magic_tuple())
        state.library = SealedLibrary(codegen, state.func_id.func_qualname)
        state.library.enable_object_caching()
        with _inner_libraries(codegen), _no_collection():
            return super()._compile_bytecode()


class SealedCache(NullCache):
    """Compiled versions of one function, a file each: a checksum and what numba pickles of a compile result."""

    def __init__(self, function: Callable, key: Key, folder: Path) -> None:
        self._base = f"{function.__module__}.{function.__qualname__}"
        self._key, self._folder = key, folder

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def load_overload(self, sig, target_context) -> CompileResult | None:
        target_context.refresh()
        try:
            content = self._path(sig, target_context.codegen()).read_bytes()
        except OSError:
            return None
        checksum, payload = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
        if hashlib.sha256(payload).digest() != checksum:
            return None
        return CompileResult._rebuild(target_context, *pickle.loads(payload))

    def save_overload(self, sig, data: CompileResult) -> None:
        if data.library.has_dynamic_globals:
            raise NotImplementedError(f"{self._base} holds addresses of this process")
        path = self._path(sig, data.codegen)
        payload = dumps(data._reduce())
        partial = self._folder / f"{leftovers.prefix(path.stem)}{uuid.uuid4().hex}"
        # a full disk or a file taken away costs the next process a compilation, and this one nothing
        with contextlib.suppress(OSError):
            leftovers.clear(self._folder)
            try:
                partial.write_bytes(hashlib.sha256(payload).digest() + payload)
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
            self._remove_others()

    def _path(self, sig, codegen) -> Path:
        """One file for every function, source, signature and target."""
        return self._folder / f"{self._prefix}{self._key.entry(sig, codegen.magic_tuple())}.sealed"

    @property
    def _prefix(self) -> str:
        return f"{self._base}.{self._key.source[:8]}."

    def _remove_others(self) -> None:
        """Remove what earlier sources left behind."""
        for path in self._folder.glob(f"{self._base}.????????.*"):
            if not path.name.startswith(self._prefix):
                path.unlink(missing_ok=True)
