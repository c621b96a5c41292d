"""config/environments.yaml, `datasets`: files of your own, and published data sets read in another way than by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from ensemblepp import registry
from ensemblepp.config.fields import Model
from ensemblepp.data import columns, load
from ensemblepp.data.table import Missing
from ensemblepp.errors import DataError

#: Published data sets of rows with a class, for environments of kind classification.
CLASSIFIED = ("mushroom", "shuttle")

#: Published data sets of posts, for environments of kind moderation.
POSTS = ("hate_speech", "davidson", "hatecheck")

_File = Annotated[str, Field(description=f"its path, from the folder of the Snakefile; ends in {', '.join(columns.SUFFIXES)}")]


class DatasetModel(Model):
    """What every entry under `datasets` has."""

    #: whether it is made of posts
    of_posts: ClassVar[bool] = False
    #: the published data set whose raw files it is made from; None: a file of the user's
    published: ClassVar[str | None] = None

    def declared(self) -> dict[str, Any]:
        """The keyword arguments of its module's `prepare`."""
        return self.model_dump(exclude={"kind", "file"})

    def rows_available(self, mirror: str | None) -> int | None:
        """How many rows or posts it has at most; None where its file is not there."""
        raise NotImplementedError

    def fault(self) -> str:
        """What is wrong with its file's columns; empty if nothing is."""
        return ""


class FileModel(DatasetModel):
    """What data sets in a file of the user's have."""

    file: _File

    @field_validator("file")
    @classmethod
    def _known_format(cls, file: str) -> str:
        if not file.endswith(columns.SUFFIXES):
            raise ValueError(f"must end in {', '.join(columns.SUFFIXES)}")
        return file

    def rows_available(self, mirror: str | None) -> int | None:
        return columns.rows_available(self.file) if Path(self.file).is_file() else None

    def names(self) -> list[str]:
        """The columns that must be there."""
        raise NotImplementedError

    def fault(self) -> str:
        try:
            columns.header(self.file, self.names())
        except DataError as error:
            return str(error)
        return ""


class Table(FileModel):
    """A table of your own, for environments of kind classification: a row for every context and a column of its classes."""

    kind: Literal["table"] = "table"
    label: str = Field(description="name of the column of the classes")
    features: list[str] | None = Field(None, description="names of the columns to keep; null: all but the label")
    nominal: list[str] | None = Field(
        None, description="columns whose numbers are only names; columns of texts are nominal by themselves"
    )
    missing: Missing = Field(
        "error", description="a field without a value is an error, or in a nominal column a category of its own"
    )

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

    def names(self) -> list[str]:
        return [self.label, *(self.features or ()), *(self.nominal or ())]


class OwnPosts(FileModel):
    """Posts of your own, for environments of kind moderation: a row for every post, with a label or a score."""

    of_posts: ClassVar[bool] = True
    kind: Literal["posts"]
    text: str = Field(description="name of the column of the texts")
    label: str = Field(
        description="name of the column of the labels: yes or no, true or false, 1 or 0 (1: to be blocked); or scores"
    )
    threshold: float | None = Field(
        None, allow_inf_nan=False, description="labels are scores, and a post is to be blocked whose score is above this"
    )
    duplicates: Literal["merge", "keep"] = Field(
        "merge", description="rows with one text become one post, by their more frequent label or mean score; or they stay"
    )

    @model_validator(mode="after")
    def _two_columns(self) -> OwnPosts:
        if self.text == self.label:
            raise ValueError(f"label: found '{self.label}', which is the column of the texts")
        return self

    def names(self) -> list[str]:
        return [self.text, self.label]


class HateSpeech(DatasetModel):
    """Measuring Hate Speech, read in another way than the data set `hate_speech` is."""

    of_posts: ClassVar[bool] = True
    published: ClassVar[str | None] = "hate_speech"
    kind: Literal["hate_speech"]
    posts: Literal["distinct", "annotations"] = Field(
        "distinct", description="each post once, or as often as it was annotated, as the paper counts them"
    )
    threshold: float | None = Field(
        None, allow_inf_nan=False, description="a post is hate whose score is above this; null: 0.5 of the hub's scores"
    )

    def rows_available(self, mirror: str | None) -> int | None:
        return load("hate_speech").rows_available(mirror, self.posts)


def _kind(value: Any) -> Any:
    """A table needs no kind."""
    return value.get("kind", "table") if isinstance(value, Mapping) else getattr(value, "kind", None)


Dataset = Annotated[
    Annotated[Table, Tag("table")] | Annotated[OwnPosts, Tag("posts")] | Annotated[HateSpeech, Tag("hate_speech")],
    Discriminator(_kind),
]


def faults(datasets: Mapping[str, DatasetModel]) -> Iterator[str]:
    """What is wrong with the data sets' names, and with the column names of their files: "name: fault"."""
    for name, dataset in datasets.items():
        if name in registry.DATASETS:
            yield f"{name}: there is a data set of this name already"
        if fault := dataset.fault():
            yield f"{name}: {fault}"
