"""Which blocks go first: one of each compiled kernel, which compiles it, while the others of that kernel wait until it has."""

from __future__ import annotations

from ensemblepp.specification import Block

FIRST, ANY, LAST = 1, 0, -1


class Priorities:
    """Priorities of the blocks of one workflow, in the order in which they are asked for."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, bool], str] = {}  # kernel -> run file of the block that compiles it

    def __call__(self, block: Block) -> int:
        """FIRST for the block that compiles a kernel, LAST for others of that kernel, ANY where nothing is compiled."""
        engine = block.spec["engine"]
        if not engine.endswith("_compiled"):
            return ANY
        # on the sphere the linear kernel is of another float type
        kernel = engine, block.spec["environment"]["kind"] == "linear_sphere"
        # one that waits for data would come too late
        if not block.inputs:
            self._first.setdefault(kernel, block.path)
        return FIRST if self._first.get(kernel) == block.path else LAST
