"""config/config.yaml: what to run, where, and where raw data may come from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ensemblepp.config.fields import Model
from ensemblepp.config.studies import Scale


class Settings(Model):
    """config/config.yaml: what to run, where, and where raw data may come from."""

    scale: Scale = Field("quick", description="smoke (a minute or two, CI), quick (minutes) or paper (as published)")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="where neural agents train; auto takes a GPU where torch sees one, cuda also requests one on SLURM",
    )
    linear_device: Literal["cpu", "cuda"] = Field(
        "cpu", description="where linear agents run: the compiled kernel on cpu, one large batch per block on cuda"
    )
    mirror: str | None = Field(
        None,
        description="folder looked in for raw files before the network; the variable ENSEMBLEPP_MIRROR does the same",
    )
    warm_start: bool = Field(
        True, description="on one machine, jobs start from a process that has loaded their libraries already"
    )
    on_unreachable: Literal["auto", "skip", "fail"] = Field(
        "auto",
        description="when raw data cannot be had: skip the studies that need it, or fail; auto skips at smoke and quick",
    )
