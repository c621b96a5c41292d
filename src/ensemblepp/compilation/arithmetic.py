"""How compiled rounds do arithmetic: sums in the order that is written, and a division by zero is no error."""

from __future__ import annotations

import numba

#: For `compiled`. A product and a sum may become one instruction.
OPTIONS = {"no_cfunc_wrapper": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}

#: For functions that compiled code calls.
inner = numba.njit(**OPTIONS)

#: The same with sums in any order, so that they are vector code: the same order for every chain, as it is the same code.
reordered = numba.njit(**OPTIONS | {"fastmath": {"contract", "reassoc"}})
