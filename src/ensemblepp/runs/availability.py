"""Which studies can run here and now: whether each one's raw data and language models are on disk or can be had."""

from __future__ import annotations

from pathlib import Path

from ensemblepp.config.resolution import Config
from ensemblepp.data import load
from ensemblepp.data.sources import MIRROR_VARIABLE, RawFile, probe_all, reachable_all
from ensemblepp.text.language_models import hub_address, local_source, missing


def left_out(config: Config, *, detail: bool = False) -> dict[str, str]:
    """Studies that cannot run, and why.

    Asks the network only for what is not on this machine, and takes a few seconds at most.

    Args:
        config: the configuration.
        detail: name every source that was tried and why it failed, too.
    """
    studies = config.active_studies()
    # files of the user's are part of the configuration, which was checked
    datasets = {
        name: [made for need in _needs(config, name, "dataset") if (made := config.published(need))] for name in studies
    }
    models = {name: _needs(config, name, "language_model") for name in studies}
    no_data = _missing_datasets(config, sorted(set().union(*datasets.values())), detail)
    no_model = _missing_models(config, sorted(set().union(*models.values())))
    reasons = {
        name: [no_data[need] for need in datasets[name] if need in no_data]
        + [no_model[need] for need in models[name] if need in no_model]
        for name in studies
    }
    return {name: "; ".join(found) for name, found in reasons.items() if found}


def not_downloaded(config: Config, study: str) -> list[str]:
    """The hub's names of a study's language models that were not downloaded yet."""
    models = {name: config.language_models[name] for name in _needs(config, study, "language_model") if not _is_here(name)}
    return [model.location for model in models.values() if model.source == "hub"]


def _needs(config: Config, study: str, attribute: str) -> list[str]:
    """The data sets or language models of a study's environments."""
    names = config.studies[study].scales[config.scale].environments
    found = (getattr(config.environments[name], attribute, None) for name in names)
    return list(dict.fromkeys(filter(None, found)))


def _missing_datasets(config: Config, datasets: list[str], detail: bool) -> dict[str, str]:
    absent = {name: _not_here(name) for name in datasets}
    files = [file for group in absent.values() for file in group]
    reach = reachable_all(files, config.mirror_folder) if files else {}
    faults = {}
    for name, group in absent.items():
        bad = [file.name for file in group if not reach[file.name].ok]
        if bad:
            tried = "; ".join(dict.fromkeys(reason for file in bad for reason in reach[file].tried))
            why = f"; tried {tried}" if detail else ""
            faults[name] = (
                f"no source of {', '.join(bad)} can be reached (set {MIRROR_VARIABLE} to a folder that holds it{why})"
            )
    return faults


def _not_here(dataset: str) -> list[RawFile]:
    """The raw files of a data set that are not under data/raw yet."""
    return [file for file in load(dataset).RAW if not Path("data/raw", file.name).exists()]


def _missing_models(config: Config, models: list[str]) -> dict[str, str]:
    absent = {name: config.language_models[name].model_dump() for name in models if not _is_here(name)}
    addresses = {name: hub_address(model) for name, model in absent.items() if model["source"] == "hub"}
    failures = probe_all(set(addresses.values()))
    faults = {}
    for name, model in absent.items():
        if name in addresses and (failure := failures[addresses[name]]):
            faults[name] = f"language model {model['location']} cannot be reached ({failure})"
        elif name not in addresses and local_source(model) is None:
            faults[name] = missing(model)
    return faults


def _is_here(model: str) -> bool:
    return Path("data/models", model, "config.json").exists()
