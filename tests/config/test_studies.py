"""Seeds and blocks of a study's grid."""

from __future__ import annotations

import pytest

from ensemblepp.config.studies import Grid


def grid(**fields: object) -> Grid:
    return Grid.model_validate({"environments": ["line"], "horizon": 1} | fields)


@pytest.mark.parametrize(
    ("seeds", "seeds_per_block", "blocks"),
    [
        (25, 10, [(0, 9), (10, 19), (20, 24)]),
        (3, 10, [(0, 2)]),
        (3, 1, [(0, 0), (1, 1), (2, 2)]),
        ([12, 3, 4, 5, 9, 10], 10, [(3, 5), (9, 9), (10, 10), (12, 12)]),
        ([7], 4, [(7, 7)]),
        ([5, 6, 7, 8, 9], 4, [(5, 7), (8, 9)]),
    ],
)
def test_blocks_are_consecutive_seeds_cut_at_multiples(seeds, seeds_per_block, blocks):
    assert list(grid(seeds=seeds, seeds_per_block=seeds_per_block).seed_blocks()) == blocks


def test_adding_seeds_keeps_every_block_that_was_full():
    for size in (1, 3, 10):
        longest = list(grid(seeds=47, seeds_per_block=size).seed_blocks())
        for count in range(1, 47):
            full = count // size
            assert list(grid(seeds=count, seeds_per_block=size).seed_blocks())[:full] == longest[:full]


def test_blocks_cover_each_seed_once():
    seeds = [seed for seed in range(60) if seed % 7 and seed % 11 != 3]
    covered = [seed for first, last in grid(seeds=seeds, seeds_per_block=6).seed_blocks() for seed in range(first, last + 1)]
    assert covered == seeds
