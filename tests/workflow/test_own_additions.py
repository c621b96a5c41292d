"""All that a user can add from outside the package, by configuration alone, in one run up to figures, tables and report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml
from project import Project, copy_project

from ensemblepp.figures import nonlinear_regret

pytestmark = pytest.mark.workflow

#: One file of the user's, beside the Snakefile.
MODULE = '''
"""An agent, an environment, a law, a figure and a table."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.special

from ensemblepp import Decisions, Outcome, generator


class Fixed:
    """Always the same action."""

    chains = (("none", "none"),)

    def __init__(self, seeds, *, dimension, ensemble_size, horizon, device, position):
        self.seeds = tuple(seeds)
        self.position = position

    def act(self, decisions):
        return decisions.choose(np.full((len(self.seeds), 1), self.position))

    def update(self, choice, reward):
        pass


class Ladder:
    """Arms without context, whose mean rewards stand in a file."""

    def __init__(self, seeds, *, noise, inputs):
        self.seeds = tuple(seeds)
        self.means = np.array([float(line) for line in Path(inputs["means"]).read_text().split()])
        self.dimension = self.fixed_actions = len(self.means)
        self.noise = noise
        self._sources = [generator(seed, "reward_noise") for seed in self.seeds]

    def decisions(self):
        return Decisions(np.tile(np.eye(self.dimension), (len(self.seeds), 1, 1)))

    def mean_rewards(self):
        return np.tile(self.means, (len(self.seeds), 1))

    def step(self, choice):
        mean = self.means[choice.index]
        noise = self.noise * np.array([[source.standard_normal()] for source in self._sources])
        return Outcome(mean + noise, self.means.max() - mean)


def laplace(gaussian):
    """Independent Laplace entries of variance 1."""
    centred = scipy.special.ndtr(gaussian) - 0.5
    return -np.sign(centred) * np.log1p(-2 * np.abs(centred)) / np.sqrt(2)


def draw(dataset):
    """Regret of every agent at the end, a bar each."""
    figure, axes = plt.subplots(figsize=(4, 3))
    final = dataset["regret"].isel(time=-1).mean(["environment", "reference", "perturbation", "ensemble_size", "seed"])
    axes.bar(dataset["label"].values, final.values)
    return figure


def build(dataset):
    """Mean regret at the end of every agent in every environment under every pair of laws."""
    final = dataset["regret"].isel(time=-1).mean(["ensemble_size", "seed"])
    return final.to_series().dropna().rename("final").reset_index()
'''

ENVIRONMENTS = """
  ladder:
    kind: custom
    title: "Ladder"
    class: own:Ladder
    options: {noise: 0.1}
    inputs: {means: means.txt}
    longest: 60
  moderation-tiny:
    kind: moderation
    title: "Moderation, tiny model"
    language_model: tiny
    posts: 40

language_models:
  tiny:
    source: folder
    location: tiny-model
    pooling: mean
"""

AGENTS = """
  fixed:
    kind: custom
    label: "Second rung"
    class: own:Fixed
    hyperparameters: {position: 1}
  linear-laws:
    kind: linear_ensemblepp
    label: "Ensemble++ (laws)"
    references: [gaussian, laplace, sparse-3]
    perturbations: [laplace]
  linear-laplace: {kind: pair, label: "Ensemble++ (Laplace)", of: linear-laws, reference: laplace, perturbation: laplace}
  neural-laplace:
    kind: neural_ensemblepp
    label: "Neural Ensemble++ (Laplace)"
    hidden: [8]
    warm_up: 10
    batch_size: 16
    references: [laplace]
    perturbations: [laplace]
    update: laplace

laws:
  laplace: {function: own:laplace}
"""

STUDIES = """
figures:
  final_bars: {function: own:draw, caption: "Bars of the regret at the end."}
tables:
  final_by_laws: {function: own:build, caption: final.rst}
  final_again: {function: own:build}

studies:
  additions:
    title: "Additions"
    agents: [fixed, linear-laws, linear-laplace, neural-laplace]
    figures: [final_bars, nonlinear_regret]
    tables: [final_by_laws, final_again, final_regret]
    scales:
      smoke:
        environments: [ladder, finite-d10-100]
        horizon: 60
        seeds: 2
        ensemble_sizes: [4]
  moderation:
    title: "Moderation by a model of one's own"
    agents: [ensemble++, greedy]
    figures: [moderation_accuracy]
    scales:
      smoke:
        environments: [moderation-tiny]
        horizon: 40
        seeds: 2
        ensemble_sizes: [4]
"""

#: A transformers model with random weights that reads characters, written to the folder tiny-model.
LANGUAGE_MODEL = """
import string, torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

vocabulary = {token: number for number, token in enumerate(["[PAD]", "[UNK]", *string.printable])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained("tiny-model")
torch.manual_seed(0)
shape = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=512)
BertModel(BertConfig(vocab_size=len(vocabulary), **shape)).save_pretrained("tiny-model")
"""

MEANS = [0.0, 0.25, 1.0]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, mirror: Path) -> Project:
    """A project with one of everything, after one run of all its studies."""
    project = copy_project(tmp_path_factory.mktemp("additions"), ENSEMBLEPP_MIRROR=str(mirror))
    config = project.folder / "config"
    (project.folder / "own.py").write_text(MODULE)
    (project.folder / "means.txt").write_text("\n".join(map(str, MEANS)))
    (project.folder / "final.rst").write_text("Of {{ snakemake.params.seeds }} seeds, by laws.\n")
    environments, before, _ = (config / "environments.yaml").read_text().partition("\nlanguage_models:\n")
    assert before
    shipped = yaml.safe_load(environments)["environments"]
    kept = {name: shipped[name] for name in ("finite-d10-100",)}
    (config / "environments.yaml").write_text(yaml.safe_dump({"environments": kept}, indent=2) + ENVIRONMENTS)
    shipped = yaml.safe_load((config / "agents.yaml").read_text())["agents"]
    # their protocol says values for environments that are not there any more
    kept = {name: shipped[name] | {"protocol": None} for name in ("ensemble++", "greedy")}
    (config / "agents.yaml").write_text(yaml.safe_dump({"agents": kept}, indent=2) + AGENTS)
    (config / "studies.yaml").write_text(STUDIES)
    done = subprocess.run(
        [sys.executable, "-c", LANGUAGE_MODEL], cwd=project.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    done = project.snakemake()
    assert done.returncode == 0, done.stdout
    return project


@pytest.fixture(scope="module")
def dataset(project: Project) -> xr.Dataset:
    return xr.load_dataset(project.folder / "results/smoke/datasets/additions.nc")


def edited(path: Path, change: str, replacement: str) -> str:
    """Replace `change` in a file; returns what the file was."""
    text = path.read_text()
    assert change in text
    path.write_text(text.replace(change, replacement, 1))
    return text


def test_the_environment_and_the_agent_play(dataset):
    regret = dataset["regret"].sel(environment="ladder", agent="fixed", ensemble_size=0, reference="none", perturbation="none")
    # the second rung has 0.25 of 1, in every round and for every seed
    assert regret.isel(time=-1).values == pytest.approx([60 * 0.75] * 2)
    learned = dataset["regret"].sel(environment="ladder", agent="linear-laplace").isel(time=-1).min()
    assert float(learned) < 60 * 0.75 / 2
    # an environment whose actions keep their meaning has constant policies
    constant = dataset["constant_regret"].sel(environment="ladder").isel(time=-1, seed=0).values
    assert constant == pytest.approx([60 * (1 - mean) for mean in MEANS])


def test_the_law_stands_wherever_a_law_can(project, dataset):
    ran = dataset["regret"].sel(agent="linear-laws").dropna("reference", how="all").dropna("perturbation", how="all")
    assert ran["reference"].values.tolist() == ["gaussian", "laplace", "sparse-3"]
    assert ran["perturbation"].values.tolist() == ["laplace"]
    pair = dataset["regret"].sel(agent="linear-laplace", reference="none", perturbation="none", ensemble_size=4)
    same = dataset["regret"].sel(agent="linear-laws", reference="laplace", perturbation="laplace", ensemble_size=4)
    assert np.array_equal(pair, same)
    other = dataset["regret"].sel(agent="linear-laws", reference="gaussian", perturbation="laplace", ensemble_size=4)
    assert not np.array_equal(other.sel(environment="finite-d10-100"), same.sel(environment="finite-d10-100"))
    specs = {(spec["environment"]["name"], spec["agent"]["name"]): spec for spec in json.loads(dataset.attrs["specs"])}
    written = {"name": "laplace", "function": "own:laplace", "normalise": True}
    assert specs["ladder", "linear-laws"]["agent"]["options"]["references"] == ["gaussian", written, "sparse-3"]
    assert specs["ladder", "neural-laplace"]["agent"]["options"]["update"] == written
    assert specs["ladder", "linear-laws"]["engine"] == "step_by_step"
    assert specs["finite-d10-100", "linear-laws"]["engine"] == "linear_compiled"
    neural = dataset["regret"].sel(agent="neural-laplace", reference="laplace", perturbation="laplace", ensemble_size=4)
    assert neural.isel(time=-1).notnull().all()


def test_figures_have_all_of_it(project, dataset):
    figures = project.folder / "results/smoke/figures"
    height, width, _ = matplotlib.image.imread(figures / "additions-final_bars.png").shape
    assert (width, height) == (640, 480), "4 by 3 inches as the function asks for, at 160 dots"
    assert (figures / "additions-final_bars.pdf").read_bytes().startswith(b"%PDF")
    matplotlib.use("Agg")
    drawn = nonlinear_regret.draw(dataset)
    legends = [*drawn.legends, *(axes.get_legend() for axes in drawn.axes if axes.get_legend())]
    names = {text.get_text() for legend in legends for text in legend.texts}
    assert {"Second rung", "Ensemble++ (Laplace)", "Neural Ensemble++ (Laplace)"} <= names
    assert (figures / "additions-nonlinear_regret.png").exists()


def test_tables_have_all_of_it(project, dataset):
    tables = project.folder / "results/smoke/tables"
    table = pd.read_csv(tables / "additions-final_by_laws.csv", keep_default_na=False)
    cells = set(zip(table["environment"], table["agent"], table["reference"], table["perturbation"], strict=True))
    assert cells == {
        (environment, *cell)
        for environment in ("ladder", "finite-d10-100")
        for cell in (
            ("fixed", "none", "none"),
            ("linear-laws", "gaussian", "laplace"),
            ("linear-laws", "laplace", "laplace"),
            ("linear-laws", "sparse-3", "laplace"),
            ("linear-laplace", "none", "none"),
            ("neural-laplace", "laplace", "laplace"),
        )
    }
    place = {"environment": "ladder", "agent": "fixed", "reference": "none", "perturbation": "none"}
    (final,) = table.loc[(table[list(place)] == pd.Series(place)).all(axis=1), "final"]
    assert final == pytest.approx(45)
    for suffix in ("md", "tex", "html"):
        assert "neural-laplace" in (tables / f"additions-final_by_laws.{suffix}").read_text()
    assert "Second rung" in (tables / "additions-final_regret.md").read_text()


def test_the_language_model_is_in_a_figure(project):
    with xr.open_dataset(project.folder / "data/embeddings/tiny/hate_speech-0-39.nc") as embedded:
        assert [size for size in embedded.sizes.values() if size == 16], "entries of the tiny model's hidden states"
    data = xr.load_dataset(project.folder / "results/smoke/datasets/moderation.nc")
    assert data["environment"].values.tolist() == ["moderation-tiny"]
    assert data["regret"].sel(agent="greedy", ensemble_size=0).isel(time=-1).notnull().any()
    assert (project.folder / "results/smoke/figures/moderation-moderation_accuracy.png").exists()


def test_the_report_says_what_the_captions_say(project):
    report = (project.folder / "results/smoke/report.html").read_text()
    assert "additions-final_bars.png" in report
    assert "Bars of the regret at the end." in report
    assert "Of 2 seeds, by laws." in report
    assert "made by own:build" in report
    assert "Nothing was left out" in report


@pytest.mark.parametrize(
    ("file", "change", "replacement", "simulated"),
    [
        # whatever stands in a module counts for all that uses the module
        ("own.py", "np.sqrt(2)\n", "np.sqrt(2.0)\n", {"fixed", "linear-laws", "neural-laplace"}),
        ("means.txt", "0.25", "0.5", {"fixed", "linear-laws", "neural-laplace"}),
        ("config/agents.yaml", "own:laplace}", "own:laplace, normalise: false}", {"linear-laws", "neural-laplace"}),
        ("config/studies.yaml", "Bars of", "Boxes of", set()),
    ],
)
def test_an_edit_plans_what_depends_on_it(project, file, change, replacement, simulated):
    path = project.folder / file
    text = edited(path, change, replacement)
    try:
        jobs = project.planned()
    finally:
        path.write_text(text)
    blocks = jobs.pop("simulate", [])
    assert {path.split("/")[4] for path in blocks} == simulated
    if file == "means.txt":
        assert {path.split("/")[3] for path in blocks} == {"ladder"}
    assert "present_additions" in jobs
    assert "present_moderation" not in jobs
    assert project.planned() == {}


def test_a_law_that_is_none_stops_its_blocks_with_one_line(project):
    module = project.folder / "own.py"
    text = edited(module, "return -np.sign", "return -2 * np.sign")
    block = "results/smoke/runs/finite-d10-100/linear-laws/M4/T60/seeds0-1.nc"
    before = (project.folder / block).read_bytes()
    try:
        done = project.snakemake(block)
        assert done.returncode != 0
        assert re.search(r"error: law 'laplace' at ensemble size 4: mean 0 and covariance I are asked for", done.stdout)
        assert "Traceback" not in done.stdout
    finally:
        module.write_text(text)
    assert project.snakemake(block).returncode == 0
    assert (project.folder / block).read_bytes() == before
