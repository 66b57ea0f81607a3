"""Common options of the experiments: where the data is, and when to stop."""

from pathlib import Path
from typing import NamedTuple


class Options(NamedTuple):
    """As given on the command line."""

    data: Path
    sentences: int | None  # learn from as many only
    passes: int
    tolerance: float  # the relative gap to stop at
    seconds: float  # for each estimator, to the end of the pass that exceeds them
    only: str | None  # only rows that have this in their names
    longest: int | None  # of what length sentences are parsed
    results: Path  # where results are kept that take long

    def wants(self, name: str) -> bool:
        return self.only is None or self.only in name

    @property
    def conll(self) -> Path:
        return self.data / "conll2000" / "train.txt"

    @property
    def entities(self) -> Path:
        return self.data / "conll2002"

    @property
    def treebank(self) -> Path:
        return self.data / "wsj"

    @property
    def stop(self) -> dict[str, float]:
        """When an estimator of the library stops."""
        return {"tolerance": self.tolerance, "max_passes": self.passes, "max_seconds": self.seconds}
