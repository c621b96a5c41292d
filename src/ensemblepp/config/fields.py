"""What all models of the configuration share: strictness, and the kinds of numbers."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ensemblepp.randomness.streams import MAX_WIDTH

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
#: Where a class or function of the user's is.
Place = Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
EnsembleSize = Annotated[int, Field(ge=1, le=MAX_WIDTH)]


class Model(BaseModel):
    """A part of the configuration; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def canonical_json(value: Any) -> str:
    """`value` as JSON on one line with sorted keys: equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
