"""Compiled functions and their cache on disk, in place of `numba.njit(cache=True)`, which can mix up machine code.

numba names a compiled function after its qualified name, its argument types and a counter of the process ("v12"), and a cached
object holds copies of all functions it calls under such names, as symbols that the loader merges: the first object loaded
wins. Two variants of a function that were compiled by different processes can share a name, and then one is run in place of
the other without an error (numba issues 5128, 6093, 10486). Here nothing can be shared and nothing can be stale:

* An object is sealed: it defines no symbol that others see but its own entries. Whatever it calls is inside, and local.
* The names of entries hold the digest of all that determines their code (`keys.Key`): the bytes of every module of the package
  that goes into them, constants, argument types, processor, and versions. Equal names are equal code.
* A cache file is found by the same digest, holds one function for one signature, is replaced as a whole, and carries a
  checksum. No index is shared by processes that compile at the same moment, no time stamp is read, and a damaged file is
  compiled anew.

Only functions that Python calls need this. Those that compiled code calls are plain `numba.njit` without a cache: they end up
inside the objects of their callers.
"""
