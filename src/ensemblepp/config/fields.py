"""What all models of the configuration share: strictness, and the kinds of numbers."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ensemblepp.randomness.streams import MAX_WIDTH

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]
#: Lists of actions, and what takes as many numbers for each entry.
Length = Annotated[int, Field(ge=1, le=10**7)]
#: Of a network's layer, and of features.
Width = Annotated[int, Field(ge=1, le=10**5)]
#: T: counts of rounds have 32 bits.
MAX_HORIZON = 10**8
Horizon = Annotated[int, Field(ge=1, le=MAX_HORIZON)]
#: Seeds of one block, which are one after the other or side by side in memory.
MAX_BLOCK = 10_000
#: Seeds of a grid, and the largest one: run files hold 64 bits.
MAX_SEEDS, MAX_SEED = 10**6, 2**63 - 1
#: Where a class or function of the user's is.
Place = Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
EnsembleSize = Annotated[int, Field(ge=1, le=MAX_WIDTH)]


class Model(BaseModel):
    """A part of the configuration; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def canonical_json(value: Any) -> str:
    """`value` as JSON on one line with sorted keys: equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
