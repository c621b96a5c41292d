"""config/studies.yaml: declared grids of runs, and what is drawn from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, field_validator

from ensemblepp.config.fields import MAX_BLOCK, MAX_SEED, MAX_SEEDS, Count, EnsembleSize, Horizon, Model, Place

Scale = Literal["smoke", "quick", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)


class Grid(Model):
    """What a scale sets: horizon, seeds and grids."""

    environments: list[str] = Field(min_length=1, description="names under environments")
    horizon: Horizon = Field(description="T, rounds per run")
    seeds: Count | list[Annotated[int, Field(ge=0)]] = Field(description="a number n (seeds 0..n-1) or a list")
    ensemble_sizes: list[EnsembleSize] = Field([8], min_length=1, description="M")
    without: dict[str, list[str]] = Field(
        {}, description="environment -> agents that are left out there, since they take too long; their settings are, too"
    )
    settings: Annotated[int, Field(ge=0)] = Field(
        0, description="of each agent's settings (tuning.yaml), how many are played beside it, from the first; at most all"
    )
    seeds_per_block: Annotated[int, Field(ge=1, le=MAX_BLOCK)] = Field(
        10, description="seeds simulated together: one file, one job"
    )

    @field_validator("seeds", mode="before")
    @classmethod
    def _some_seeds(cls, seeds: Any) -> Any:
        # before the type is checked: of a union, pydantic reports every branch
        listed = seeds if isinstance(seeds, list) else [seeds]
        whole = all(type(seed) is int and seed >= 0 for seed in listed)
        if not whole or not listed or len(set(listed)) < len(listed) or seeds == 0:
            raise ValueError("must be a number of at least 1, or a list of whole numbers, each only once")
        count, largest = (len(seeds), max(seeds)) if isinstance(seeds, list) else (seeds, 0)
        if count > MAX_SEEDS or largest > MAX_SEED:
            raise ValueError(f"must be at most {MAX_SEEDS} seeds, and none above {MAX_SEED}")
        return seeds

    def block_count(self) -> int:
        """How many blocks of seeds there are, about; without listing them."""
        count = self.seeds if isinstance(self.seeds, int) else len(self.seeds)
        return -(-count // self.seeds_per_block)

    def seed_list(self) -> list[int]:
        return list(range(self.seeds)) if isinstance(self.seeds, int) else sorted(self.seeds)

    def seed_blocks(self) -> Iterator[tuple[int, int]]:
        """(first, last) of runs of consecutive seeds, cut at multiples of `seeds_per_block`."""
        by_block = itertools.groupby(
            enumerate(self.seed_list()), lambda pair: (pair[1] - pair[0], pair[1] // self.seeds_per_block)
        )
        for _, pairs in by_block:
            seeds = [seed for _, seed in pairs]
            yield seeds[0], seeds[-1]


class OwnArtefact(Model):
    """A figure or a table of your own, under a name that no module of ensemblepp.figures or ensemblepp.tables has."""

    function: Place = Field(
        description="`package.module:function`, from a study's xarray dataset to a matplotlib figure, or to a pandas data frame"
    )
    caption: str | None = Field(None, description="what the report says below it: a path that ends in .rst, or a text")

    @property
    def caption_file(self) -> str | None:
        """The file that `caption` names, if it names one."""
        return self.caption if self.caption and self.caption.endswith(".rst") else None


class Study(Model):
    """A declared grid of runs, and what is drawn from it."""

    title: str = Field(description="heading in the report")
    agents: list[str] = Field(min_length=1, description="names under agents")
    figures: list[str] = Field([], description="modules of ensemblepp.figures, or names under `figures`")
    tables: list[str] = Field([], description="modules of ensemblepp.tables, or names under `tables`")
    scales: dict[Scale, Grid] = Field(min_length=1, description="one grid per scale; a scale left out skips the study")
