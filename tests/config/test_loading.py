"""Files to a checked configuration, and what is said of files that are none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from small_configuration import small
from snakemake.utils import update_config

from ensemblepp.config.checks import CONFIG_FILES
from ensemblepp.config.loading import load, read_files, read_yaml
from ensemblepp.config.resolution import Config
from ensemblepp.config.studies import SCALES
from ensemblepp.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("scale", SCALES)
def test_the_shipped_files_load_at_every_scale_and_no_two_runs_share_a_file(scale):
    config = read_files(ROOT, scale=scale)
    assert config.scale == scale
    specs: dict[str, dict] = {}
    for study in config.active_studies():
        blocks = config.blocks(study)
        assert blocks
        assert len({block.path for block in blocks}) == len(blocks)
        for block in blocks:
            assert specs.setdefault(block.path, block.spec) == block.spec


def test_parsing_loads_no_heavy_library():
    script = (
        "import sys\n"
        "from ensemblepp.config.loading import read_files\n"
        "from ensemblepp.runs.plan import plan\n"
        "config = read_files()\n"
        "plans = [plan(config, study) for study in config.active_studies()]\n"
        "print(*sorted(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "ensemblepp.config.resolution" in loaded
    heavy = {"torch", "xarray", "transformers", "pandas", "seaborn", "matplotlib", "scipy", "netCDF4", "datasets", "numba"}
    assert loaded & heavy == set()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agents:\n  ts: {kind: [\n", "line 3: not valid YAML: expected the node content, but found '<stream end>'"),
        ("- ts\n- es\n", "must be a mapping of keys to values"),
        ("only words\n", "must be a mapping of keys to values"),
    ],
)
def test_a_file_that_is_no_mapping(tmp_path, text, message):
    copy_config(tmp_path)
    path = tmp_path / "config/agents.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_files(tmp_path)
    assert str(error.value) == f"{path}: {message}"


def test_files_of_ones_own_are_merged_as_snakemake_merges_them(tmp_path):
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    files[0].write_text("scale: smoke\nagents:\n  ts: {label: Exact}\n  mine: {kind: linear_ts, label: Mine}\n")
    files[1].write_text("agents:\n  mine: {label: Yours}\n")
    values: dict = {}
    for path in [*(ROOT / name for name in CONFIG_FILES), *files]:
        update_config(values, yaml.safe_load(path.read_text()))
    merged = read_files(ROOT, merged=files)
    assert merged == load(values)
    assert (merged.scale, merged.agents["ts"].label, merged.agents["mine"].label) == ("smoke", "Exact", "Yours")
    assert merged.agents["ensemble++"] == read_files(ROOT).agents["ensemble++"]


def test_a_missing_file(tmp_path):
    copy_config(tmp_path)
    (tmp_path / "config/studies.yaml").unlink()
    with pytest.raises(ConfigError) as error:
        read_files(tmp_path)
    assert str(error.value) == f"{tmp_path}/config/studies.yaml: no such file; run from the folder that holds the Snakefile"


def copy_config(folder: Path) -> None:
    (folder / "config").mkdir()
    for name in CONFIG_FILES:
        (folder / name).write_text((ROOT / name).read_text())


def test_the_configuration_cannot_be_changed_after_its_check():
    config = load(small())
    assert isinstance(config, Config)
    with pytest.raises(ValueError, match="frozen"):
        config.scale = "paper"


@pytest.mark.parametrize("name", CONFIG_FILES)
def test_libyaml_reads_what_python_reads(name, monkeypatch):
    fast = read_yaml(ROOT / name)
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert read_yaml(ROOT / name) == fast


def test_a_key_that_stands_twice_is_found_at_any_depth_and_beside_merges(tmp_path):
    text = "a: &a {b: 1}\nc:\n  - d: {<<: *a, b: 2}\n"
    (tmp_path / "one.yaml").write_text(text)
    assert read_yaml(tmp_path / "one.yaml") == {"a": {"b": 1}, "c": [{"d": {"b": 2}}]}
    (tmp_path / "one.yaml").write_text(text.replace("b: 2", "b: 2, b: 3"))
    with pytest.raises(ConfigError, match="line 3: not valid YAML: the key 'b' is there already, in line 3"):
        read_yaml(tmp_path / "one.yaml")
