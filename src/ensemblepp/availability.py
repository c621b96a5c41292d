"""Which studies can run here and now: whether each one's raw data and language models are on disk or can be had."""

from __future__ import annotations

from pathlib import Path

from ensemblepp.config import Config, LanguageModel, Study
from ensemblepp.data import load
from ensemblepp.data.sources import MIRROR_VARIABLE, RawFile, probe_all, reachable_all
from ensemblepp.language_models import hub_address, local_source, missing


def left_out(config: Config) -> dict[str, str]:
    """Studies that cannot run, and why; asks the network only for what is not on this machine. Takes a few seconds at most."""
    studies = config.active_studies()
    files = {file.name: file for study in studies.values() for name in _datasets(config, study) for file in _absent(name)}
    reach = reachable_all(files.values(), config.mirror_folder) if files else {}
    faults: dict[str, str] = {}
    for name in {name for study in studies.values() for name in _datasets(config, study)}:
        bad = [file.name for file in _absent(name) if not reach[file.name].ok]
        if bad:
            faults[name] = f"no source of {', '.join(bad)} can be reached (set {MIRROR_VARIABLE} to a folder that holds it)"
    models = {name for study in studies.values() for name in _models(config, study)}
    faults |= _unavailable_models({name: config.language_models[name] for name in models})
    needs = {name: [*_datasets(config, study), *_models(config, study)] for name, study in studies.items()}
    return {
        name: "; ".join(faults[need] for need in required if need in faults)
        for name, required in needs.items()
        if any(need in faults for need in required)
    }


def _datasets(config: Config, study: Study) -> list[str]:
    environments = [config.environments[name] for name in study.scales[config.scale].environments]
    return list(dict.fromkeys(world.dataset for world in environments if hasattr(world, "dataset")))


def _models(config: Config, study: Study) -> list[str]:
    environments = [config.environments[name] for name in study.scales[config.scale].environments]
    return list(dict.fromkeys(world.language_model for world in environments if hasattr(world, "language_model")))


def _absent(dataset: str) -> list[RawFile]:
    """The raw files of a data set that are not under data/raw yet."""
    return [file for file in load(dataset).RAW if not Path("data/raw", file.name).exists()]


def _unavailable_models(models: dict[str, LanguageModel]) -> dict[str, str]:
    absent = {
        name: model.model_dump() for name, model in models.items() if not Path("data/models", name, "config.json").exists()
    }
    on_hub = {name: hub_address(model) for name, model in absent.items() if model["source"] == "hub"}
    failures = probe_all(set(on_hub.values())) if on_hub else {}
    faults = {
        name: f"language model {absent[name]['location']} cannot be reached ({failures[address]})"
        for name, address in on_hub.items()
        if failures[address]
    }
    local = {name: model for name, model in absent.items() if model["source"] != "hub"}
    return faults | {name: missing(model) for name, model in local.items() if local_source(model) is None}
