"""config/environments.yaml, `datasets`: tables of your own, each a data set for environments of kind classification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator, model_validator

from ensemblepp import registry
from ensemblepp.config.fields import Model
from ensemblepp.data.table import SUFFIXES, Missing, header
from ensemblepp.errors import DataError


class Table(Model):
    """A data set of your own: a table with a row for every context and a column of its classes."""

    file: str = Field(description=f"its path, from the folder of the Snakefile; ends in {', '.join(SUFFIXES)}")
    label: str = Field(description="name of the column of the classes")
    features: list[str] | None = Field(None, description="names of the columns to keep; null: all but the label")
    nominal: list[str] | None = Field(
        None, description="columns whose numbers are only names; columns of texts are nominal by themselves"
    )
    missing: Missing = Field(
        "error", description="a field without a value is an error, or in a nominal column a category of its own"
    )

    @field_validator("file")
    @classmethod
    def _known_format(cls, file: str) -> str:
        if not file.endswith(SUFFIXES):
            raise ValueError(f"must end in {', '.join(SUFFIXES)}")
        return file

    @model_validator(mode="after")
    def _fitting_names(self) -> Table:
        for key in ("features", "nominal"):
            names = getattr(self, key) or []
            if self.label in names:
                raise ValueError(f"{key}: must not list '{self.label}', which is the label")
            if len(set(names)) < len(names):
                raise ValueError(f"{key}: each name only once")
        if self.features is not None:
            for name in self.nominal or ():
                if name not in self.features:
                    raise ValueError(f"nominal: '{name}' is not one of the features")
        return self

    def declared(self) -> dict[str, Any]:
        """The keyword arguments of `ensemblepp.data.table.read`."""
        return self.model_dump(exclude={"file"})


def faults(tables: Mapping[str, Table]) -> Iterator[str]:
    """What is wrong with the tables' names, and with the column names of their files: "name: fault"."""
    for name, table in tables.items():
        if name in registry.DATASETS:
            yield f"{name}: there is a data set of this name already"
        try:
            header(table.file, [table.label, *(table.features or ()), *(table.nominal or ())])
        except DataError as error:
            yield f"{name}: {error}"
