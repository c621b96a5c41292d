"""`dataset.bandit`: regret as a figure and paired differences as a table, of a comparison or of a study's dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from ensemblepp import registry
from ensemblepp.errors import ConfigError, one_of
from ensemblepp.tables import paired_regret

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: The attribute of datasets.
NAME = "bandit"


class BanditAccessor:
    """What a dataset with the dimensions of a study's can show.

    Args:
        dataset: as `compare` and the workflow's `aggregate` make it.
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def plot(self, figure: str = "nonlinear_regret") -> Figure:
        """Mean cumulative regret with its 95 % interval over seeds, or another figure.

        Args:
            figure: a module of `ensemblepp.figures`, or "module:function" of your own.

        Returns:
            A matplotlib figure: a notebook shows it, `savefig` writes it.
        """
        # only here: a dataset is made and read without matplotlib
        import matplotlib as mpl
        import matplotlib.pyplot as plt

        from ensemblepp.figures import style

        # the caller's own figures keep their style
        with mpl.rc_context():
            style.apply()
            # what a figure is made with is what it is saved with
            mpl.rcParams["figure.dpi"] = mpl.rcParams["savefig.dpi"]
            drawn: Figure = registry.load(registry.presentation("figures", figure))(self._dataset)
            style.settle(drawn)
            # or a notebook would show it twice
            plt.close(drawn)
        return drawn

    def differences(self, against: str | None = None) -> pd.DataFrame:
        """Regret at the horizon minus one agent's, seed by seed; above zero, that one is better.

        Args:
            against: an agent by its name along the dimension `agent`; None: the first.

        Returns:
            A row per environment, other agent and ensemble size: mean, 95 % interval, median.

        Raises:
            ConfigError: there is no such agent, or no other.
        """
        names = [str(name) for name in self._dataset["agent"].values]
        first = names[0] if against is None else against
        if first not in names:
            raise ConfigError(f"against: found '{first}': {one_of(names, first)}")
        if len(names) == 1:
            raise ConfigError(f"differences: '{first}' is the only agent; compare two or more")
        return paired_regret.build(self._dataset.sel(agent=[first, *(name for name in names if name != first)]))


def register() -> None:
    """Give `xarray.Dataset` the attribute, once."""
    if not hasattr(xr.Dataset, NAME):
        xr.register_dataset_accessor(NAME)(BanditAccessor)
