"""A dataset for every figure that is shipped, from the tests that look at them one by one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import finetuned_study
import xarray as xr
from posts_study import play


def beside(name: str) -> ModuleType:
    """Another file of tests, for its datasets."""
    spec = importlib.util.spec_from_file_location(f"beside_{name}", Path(__file__).parent / "figures" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases() -> dict[str, Callable[[], xr.Dataset]]:
    """A dataset for every figure that is shipped; more than one where panels wrap or there are many of them."""
    linear, nonlinear = beside("test_linear_figures"), beside("test_nonlinear_figures")
    made = {name: make for module in (linear, nonlinear) for name, (make, _) in module.FIGURES.items()}
    made |= {f"{name}, {words}": make for words, (name, make) in nonlinear.WIDE.items()}
    of_posts = ("moderation_accuracy", "moderation_pipeline", "floor_to_ceiling", "calibration")
    made |= {name: lambda: play("publish_or_block").data for name in of_posts}
    made["review_workload"] = lambda: play("remove_or_review").data
    made["covariance_spectrum"] = beside("test_covariance_spectrum").study
    made["linear_regret"] = linear.ensembles
    made["laws_heatmap"] = lambda: linear.laws(sizes=(2, 4, 8, 16, 32), environments=("d10-100", "d10-1000", "d40-1000"))
    made["frozen_or_finetuned"] = finetuned_study.dataset
    made["tuning_budget"] = lambda: beside("test_tuning_budget").played().assign_attrs(scale="quick", seeds=4)
    return made


CASES = cases()
