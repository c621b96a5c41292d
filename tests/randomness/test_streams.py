"""Random streams: (seed, stream name) decides them and nothing else; one Gaussian vector per step serves every width."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from ensemblepp.randomness import streams
from ensemblepp.randomness.streams import MAX_WIDTH, OWN, STREAMS, GaussianRows, StepNoise, generator

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def take(noise: StepNoise, steps: int) -> np.ndarray:
    """The next steps' vectors, (steps, seeds, width)."""
    return np.array([noise.next().copy() for _ in range(steps)])


def test_first_bits_of_three_generators():
    """The bits that NumPy's SFC64 gives for (seed, first 8 bytes of the name's SHA-256): no new version may change them."""
    assert generator(0, "environment").bit_generator.random_raw(2).tolist() == [0x7392E85E8196FA8C, 0x05DB40F1A5DB6CF5]
    assert generator(1, "environment").bit_generator.random_raw(2).tolist() == [0xCD7CCFF5035ABDAE, 0xAEA2BD96A85DC0EE]
    assert generator(0, "minibatch").bit_generator.random_raw(2).tolist() == [0x10809D372674960D, 0x00AAD8C39A7E109D]


@pytest.mark.parametrize(
    ("stream", "draws"),
    [
        ("environment", [0.30714476908632427, -0.7679732488460046]),
        ("reward_noise", [1.202453444979183, 0.058679063892652004]),
        ("agent", [-1.6076492370207827, -1.2070890437678659]),
        ("perturbation", [-0.9800810326358337, -1.830241863374614]),
        ("reference", [0.2533812717353224, -1.1304770736168834]),
        ("minibatch", [-0.8245513193689864, 0.6204872857903175]),
    ],
)
def test_first_normals_of_seed_7(stream, draws):
    """Golden values: every published number rests on them."""
    assert generator(7, stream).standard_normal(2).tolist() == draws


def test_step_noise_of_seeds_0_and_5():
    """Golden values of steps 1 and 65 (the second chunk), at the seams of the vector: entries 0 and 1, 15 and 16, 64 and 65."""
    steps = take(StepNoise([0, 5], "reference", 66), 65)
    assert steps[0, :, :2].tolist() == [[1.3224655100483502, 1.416244965760963], [0.36357304533150997, 0.15789157710285917]]
    assert steps[64, :, :2].tolist() == [
        [-2.1198454146364725, 0.040699982963871895],
        [-1.0114292774610922, 2.8969343472298243],
    ]
    assert steps[0, :, 15:17].tolist() == [
        [-0.05934680309739482, 1.4233944883814738],
        [-0.3179256461999515, 1.2899755959982344],
    ]
    assert steps[64, :, 15:17].tolist() == [[0.8991773698223221, 2.098694336203542], [1.5269239089115205, -0.811067571675717]]
    assert steps[0, :, 64:].tolist() == [[0.6459120224879051, -0.5577058618245222], [-0.7883684781126227, -0.7536121372348776]]
    assert steps[64, :, 64:].tolist() == [[0.6687726980573325, -0.7781924114473557], [-2.6179446098661634, 0.4463289146320724]]


def test_the_generator_is_new_at_every_call():
    """Same (seed, name): same draws, whatever was drawn before, and from which stream."""
    first = generator(3, "agent")
    draws = first.standard_normal(5)
    generator(3, "environment").standard_normal(1000)
    assert np.array_equal(generator(3, "agent").standard_normal(5), draws)
    assert not np.array_equal(first.standard_normal(5), draws)


def test_seeds_and_names_give_uncorrelated_streams():
    """4 seeds of every stream and of two of a user's, 50,000 normals each: all correlations lie within 5/sqrt(n)."""
    keys = list(itertools.product(range(4), [*STREAMS, f"{OWN}one", f"{OWN}two"]))
    draws = np.array([generator(seed, stream).standard_normal(50_000) for seed, stream in keys])
    assert len(np.unique(draws[:, 0])) == len(keys)
    correlation = np.corrcoef(draws) - np.eye(len(keys))
    assert np.abs(correlation).max() < Z / math.sqrt(50_000)


@pytest.mark.parametrize("width", [1, 2, 8, 15, 16, 17, 63, 64, 65, 100, 128, 129, 256, 257, 512, 513, 1023])
def test_narrow_vectors_begin_wide_ones(width):
    """All ensemble sizes of a seed share their draws: width w is the first w entries of width 1,024."""
    narrow = take(StepNoise([0, 1], "perturbation", width), 70)
    wide = take(StepNoise([0, 1], "perturbation", MAX_WIDTH), 70)
    assert narrow.shape == (70, 2, width)
    assert np.array_equal(narrow, wide[:, :, :width])


@pytest.mark.parametrize("width", [3, 100])
@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_the_chunk_changes_no_value(chunk, width):
    assert np.array_equal(
        take(StepNoise([2, 9], "reference", width, chunk), 150), take(StepNoise([2, 9], "reference", width), 150)
    )


@pytest.mark.parametrize("width", [3, 100])
def test_other_seeds_change_no_value(width):
    """Rows stand in the order of the seeds that were asked for."""
    together = take(StepNoise([4, 0, 11], "reference", width), 70)
    for row, seed in enumerate([4, 0, 11]):
        assert np.array_equal(together[:, [row]], take(StepNoise([seed], "reference", width), 70))


def test_a_vector_s_entries_come_from_seven_streams():
    """Entry 0 from the named stream, 1..15 from "name/1", and so on: a step draws no more than its width reaches into."""
    plain = generator(8, "reward_noise").standard_normal(70)
    assert np.array_equal(take(StepNoise([8], "reward_noise", 1), 70)[:, 0, 0], plain)
    pieces = [plain[:, None]]
    for start, end in itertools.pairwise((1, 16, 64, 128, 256, 512, 1024)):
        pieces.append(streams._open(8, f"reward_noise/{start}").standard_normal((70, end - start)))
        wide = take(StepNoise([8], "reward_noise", end), 70)[:, 0]
        assert np.array_equal(wide, np.concatenate(pieces, axis=1))


@pytest.mark.parametrize("width", [1, 3, 100])
def test_rows_of_one_seed_are_taken_in_any_portions(width):
    """150 steps at once, or 1, 6, 93 and 50 of them; they are what `StepNoise` gives, and the caller's to change."""
    whole = GaussianRows(4, "agent", width).take(150)
    assert (whole.shape, whole.dtype) == ((150, width), np.float64)
    rows = GaussianRows(4, "agent", width)
    portions = [rows.take(steps) for steps in (1, 6, 93, 50)]
    assert np.array_equal(np.concatenate(portions), whole)
    assert np.array_equal(take(StepNoise([9, 4], "agent", width), 150)[:, 1], whole)
    portions[0][:] = 0.0
    assert np.array_equal(GaussianRows(4, "agent", width).take(150), whole)


def test_step_noise_is_standard_normal():
    """3,000 steps of width 80, over the seams at 1, 16 and 64: Kolmogorov-Smirnov, mean 0, and covariance I by entry."""
    draws = take(StepNoise([0], "reference", 80), 3000)[:, 0]
    assert stats.kstest(draws.ravel(), "norm").pvalue > 1e-3
    assert np.abs(draws.mean(axis=0)).max() < Z / math.sqrt(3000)
    covariance = draws.T @ draws / 3000
    error = np.where(np.eye(80, dtype=bool), math.sqrt(2 / 3000), math.sqrt(1 / 3000))
    assert (np.abs(covariance - np.eye(80)) < Z * error).all()


def test_steps_are_uncorrelated():
    """Neighbouring steps, and steps one chunk of 64 apart."""
    draws = take(StepNoise([0], "perturbation", 50), 2064)[:, 0]
    for lag in (1, 2, 64):
        products = draws[lag:] * draws[:-lag]
        assert abs(products.mean()) < Z / math.sqrt(products.size)


@pytest.mark.parametrize("width", [0, -1, 1025])
def test_width_beyond_the_table_is_refused(width):
    with pytest.raises(ValueError, match=f"width must be in 1..1024, found {width}"):
        StepNoise([0], "reference", width)
    with pytest.raises(ValueError, match=f"width must be in 1..1024, found {width}"):
        GaussianRows(0, "reference", width)
