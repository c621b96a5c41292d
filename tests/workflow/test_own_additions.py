"""All that a user can add from outside the package, by configuration alone, in one run up to figures, tables and report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml
from project import HOW_TO, Project, copy_project

from ensemblepp.figures import nonlinear_regret

pytestmark = pytest.mark.workflow


def block(language: str, words: str) -> str:
    """The how-to pages' block of code that has `words`."""
    (found,) = [code for code in re.findall(rf"^```{language}\n(.*?)^```", HOW_TO, re.MULTILINE | re.DOTALL) if words in code]
    return found


#: Files of the user's beside the Snakefile: the how-to pages', and an agent with a hyper-parameter.
FILES = {
    "uniform.py": block("python", "class Uniform"),
    "arms.py": block("python", "class Arms"),
    "final.py": block("python", "def build(dataset)"),
    "laplace.py": block("python", "def laplace(gaussian)"),
    "fixed.py": """
import numpy as np


class Fixed:
    chains = (("none", "none"),)

    def __init__(self, seeds, *, dimension, ensemble_size, horizon, device, position):
        self.seeds = tuple(seeds)
        self.position = position

    def act(self, decisions):
        return decisions.choose(np.full((len(self.seeds), 1), self.position))

    def update(self, choice, reward):
        pass
""",
    "means.txt": "0.0 0.25 1.0",
    "final.rst": "Of {{ snakemake.params.seeds }} seeds, by laws.",
}

ENVIRONMENTS = f"""
{block("yaml", "class: arms:Arms")}
    longest: 60
{block("yaml", "kind: moderation")}
language_models:
{block("yaml", "source: folder")}
"""

AGENTS = f"""
{block("yaml", "class: uniform:Uniform")}
  fixed:
    kind: custom
    label: "Second arm"
    class: fixed:Fixed
    hyperparameters: {{position: 1}}
  linear-laws:
    kind: linear_ensemblepp
    label: "Ensemble++ (laws)"
    references: [gaussian, laplace, sparse-3]
    perturbations: [laplace]
  linear-laplace: {{kind: pair, label: "Ensemble++ (Laplace)", of: linear-laws, reference: laplace, perturbation: laplace}}
  neural-laplace:
    kind: neural_ensemblepp
    label: "Neural Ensemble++ (Laplace)"
    hidden: [8]
    warm_up: 10
    batch_size: 16
    references: [laplace]
    perturbations: [laplace]
    update: laplace

{block("yaml", "function: laplace:laplace")}
"""

STUDIES = f"""
{block("yaml", "function: final:draw")}
  final_again: {{function: final:build, caption: final.rst}}

studies:
  additions:
    title: "Additions"
    agents: [uniform, fixed, linear-laws, linear-laplace, neural-laplace]
    figures: [final_bars, nonlinear_regret]
    tables: [final_by_laws, final_again, final_regret]
    scales:
      smoke:
        environments: [arms, finite-d10-100]
        horizon: 60
        seeds: 2
        ensemble_sizes: [4]
  moderation:
    title: "Moderation by a model of one's own"
    agents: [ensemble++, greedy]
    figures: [moderation_accuracy]
    scales:
      smoke:
        environments: [moderation-mine]
        horizon: 40
        seeds: 2
        ensemble_sizes: [4]
"""

#: A transformers model with random weights that reads characters, written to the folder that they name.
LANGUAGE_MODEL = """
import string, torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

vocabulary = {token: number for number, token in enumerate(["[PAD]", "[UNK]", *string.printable])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained("models/mine")
torch.manual_seed(0)
shape = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=512)
BertModel(BertConfig(vocab_size=len(vocabulary), **shape)).save_pretrained("models/mine")
"""

MEANS = [0.0, 0.25, 1.0]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, mirror: Path) -> Project:
    """A project with one of everything, after one run of all its studies."""
    project = copy_project(tmp_path_factory.mktemp("additions"), ENSEMBLEPP_MIRROR=str(mirror))
    config = project.folder / "config"
    for name, text in FILES.items():
        (project.folder / name).write_text(text)
    environments, before, _ = (config / "environments.yaml").read_text().partition("\nlanguage_models:\n")
    assert before
    shipped = yaml.safe_load(environments)["environments"]
    kept = {name: shipped[name] for name in ("finite-d10-100",)}
    (config / "environments.yaml").write_text(yaml.safe_dump({"environments": kept}, indent=2) + ENVIRONMENTS)
    shipped = yaml.safe_load((config / "agents.yaml").read_text())["agents"]
    # their protocol says values for environments that are not there any more
    kept = {name: shipped[name] | {"protocol": None} for name in ("ensemble++", "greedy")}
    (config / "agents.yaml").write_text(yaml.safe_dump({"agents": kept}, indent=2) + AGENTS)
    # agents that are tuned are not there any more, either
    (config / "tuning.yaml").write_text("tuning: {}\n")
    (config / "settings.yaml").write_text("settings: {}\n")
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
    regret = dataset["regret"].sel(environment="arms", ensemble_size=0, reference="none", perturbation="none")
    # the second arm has 0.25 of 1, in every round and for every seed
    assert regret.sel(agent="fixed").isel(time=-1).values == pytest.approx([60 * 0.75] * 2)
    # three standard errors of 120 choices among regrets 1, 0.75 and 0
    assert float(regret.sel(agent="uniform").isel(time=-1).mean()) == pytest.approx(60 * 1.75 / 3, abs=60 * 3 * 0.42 / 120**0.5)
    learned = dataset["regret"].sel(environment="arms", agent="linear-laplace").isel(time=-1).min()
    assert float(learned) < 60 * 0.75 / 2
    # an environment whose actions keep their meaning has constant policies
    constant = dataset["constant_regret"].sel(environment="arms").isel(time=-1, seed=0).values
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
    written = {"name": "laplace", "function": "laplace:laplace", "normalise": True}
    assert specs["arms", "linear-laws"]["agent"]["options"]["references"] == ["gaussian", written, "sparse-3"]
    assert specs["arms", "neural-laplace"]["agent"]["options"]["update"] == written
    assert specs["arms", "linear-laws"]["engine"] == "step_by_step"
    assert specs["finite-d10-100", "linear-laws"]["engine"] == "linear_compiled"
    neural = dataset["regret"].sel(agent="neural-laplace", reference="laplace", perturbation="laplace", ensemble_size=4)
    assert neural.isel(time=-1).notnull().all()


def test_figures_have_all_of_it(project, dataset):
    figures = project.folder / "results/smoke/figures"
    height, width, _ = matplotlib.image.imread(figures / "additions-final_bars.png").shape
    assert (width, height) == (880, 480), "5.5 by 3 inches as the function asks for, at 160 dots"
    assert (figures / "additions-final_bars.pdf").read_bytes().startswith(b"%PDF")
    matplotlib.use("Agg")
    drawn = nonlinear_regret.draw(dataset)
    plt.close(drawn)
    legends = [*drawn.legends, *(axes.get_legend() for axes in drawn.axes if axes.get_legend())]
    names = {text.get_text() for legend in legends for text in legend.texts}
    assert {"Second arm", "Ensemble++ (Laplace)", "Neural Ensemble++ (Laplace)"} <= names
    assert (figures / "additions-nonlinear_regret.png").exists()


def test_tables_have_all_of_it(project, dataset):
    tables = project.folder / "results/smoke/tables"
    table = pd.read_csv(tables / "additions-final_by_laws.csv", keep_default_na=False)
    cells = set(zip(table["environment"], table["agent"], table["reference"], table["perturbation"], strict=True))
    assert cells == {
        (environment, *cell)
        for environment in ("arms", "finite-d10-100")
        for cell in (
            ("uniform", "none", "none"),
            ("fixed", "none", "none"),
            ("linear-laws", "gaussian", "laplace"),
            ("linear-laws", "laplace", "laplace"),
            ("linear-laws", "sparse-3", "laplace"),
            ("linear-laplace", "none", "none"),
            ("neural-laplace", "laplace", "laplace"),
        )
    }
    place = {"environment": "arms", "agent": "fixed", "reference": "none", "perturbation": "none", "ensemble_size": 0}
    (final,) = table.loc[(table[list(place)] == pd.Series(place)).all(axis=1), "regret"]
    assert final == pytest.approx(45)
    for suffix in ("md", "tex", "html"):
        assert "neural-laplace" in (tables / f"additions-final_by_laws.{suffix}").read_text()
    assert "Second arm" in (tables / "additions-final_regret.md").read_text()


def test_the_language_model_is_in_a_figure(project):
    with xr.open_dataset(project.folder / "data/embeddings/mine/hate_speech-2000.nc") as embedded:
        assert [size for size in embedded.sizes.values() if size == 16], "entries of the tiny model's hidden states"
    data = xr.load_dataset(project.folder / "results/smoke/datasets/moderation.nc")
    assert data["environment"].values.tolist() == ["moderation-mine"]
    assert data["regret"].sel(agent="greedy", ensemble_size=0).isel(time=-1).notnull().any()
    assert (project.folder / "results/smoke/figures/moderation-moderation_accuracy.png").exists()


def test_the_report_says_what_the_captions_say(project):
    report = (project.folder / "results/smoke/report.html").read_text()
    assert "additions-final_bars.png" in report
    assert "Mean regret at the end." in report
    assert "Of 2 seeds, by laws." in report
    assert "made by final:build" in report
    assert "Nothing was left out" in report


@pytest.mark.parametrize(
    ("file", "change", "replacement", "simulated"),
    [
        ("laplace.py", "np.sqrt(2)", "np.sqrt(2.0)", {"linear-laws", "neural-laplace"}),
        ("fixed.py", "self.position)", "1 * self.position)", {"fixed"}),
        ("arms.py", "self.means.max()", "max(self.means)", {"uniform", "fixed", "linear-laws", "neural-laplace"}),
        ("means.txt", "0.25", "0.5", {"uniform", "fixed", "linear-laws", "neural-laplace"}),
        ("final.py", "(5.5, 3)", "(5.5, 4)", set()),
        ("config/agents.yaml", "laplace:laplace}", "laplace:laplace, normalise: false}", {"linear-laws", "neural-laplace"}),
        ("config/studies.yaml", "Mean regret", "Regret", set()),
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
    if file in ("means.txt", "arms.py"):
        assert {path.split("/")[3] for path in blocks} == {"arms"}
    assert "present_additions" in jobs
    assert "present_moderation" not in jobs


def test_edits_that_are_taken_back_leave_nothing_to_do(project):
    assert project.planned() == {}


def test_a_law_that_is_none_stops_its_blocks_with_one_line(project):
    module = project.folder / "laplace.py"
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
