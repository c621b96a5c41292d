"""The package is made of layers: a module imports what lies below it, and nothing imports in a circle."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

#: From the ground up. Parts of one layer know nothing of each other.
LAYERS = (
    {"errors", "warm_start"},
    {"trajectory", "bandit"},
    {"registry", "devices"},
    {"storage"},
    {"compilation"},
    {"randomness"},
    {"analysis"},
    {"text", "data"},
    {"environments"},
    {"figures", "tables", "claims"},
    {"report"},
    {"agents"},
    {"engines"},
    {"specification"},
    {"config"},
    {"runs"},
    {"arguments", "testing"},
    {"cli"},
    {"__main__"},
)


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Module -> the modules that it imports, within functions too, all without the package's own name in front."""
    graph = grimp.build_graph("ensemblepp", cache_dir=None)
    found = {
        short(module): {short(target) for target in graph.find_modules_directly_imported_by(module)} for module in graph.modules
    }
    # the package itself hands out names of all layers, each loaded when it is asked for
    return {module: targets for module, targets in found.items() if module}


def short(module: str) -> str:
    return module.removeprefix("ensemblepp").removeprefix(".")


def part(module: str) -> str:
    return module.split(".")[0]


def test_every_part_has_a_layer(imports):
    assert {part(module) for module in imports} == set().union(*LAYERS)
    assert len(set().union(*LAYERS)) == sum(map(len, LAYERS))


def test_nothing_imports_in_a_circle(imports):
    """Grimp sees imports within functions, which hide circles from Python."""
    assert "config.loading" in imports["cli.presenting"], "an import within a function"
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as circle:
        pytest.fail(" <- ".join(circle.args[1]))


def test_a_module_imports_what_lies_below_it(imports):
    height = {name: level for level, names in enumerate(LAYERS) for name in names}
    upward = [
        f"{module} imports {target}"
        for module, targets in imports.items()
        for target in targets
        if target and part(target) != part(module) and height[part(target)] >= height[part(module)]
    ]
    assert upward == []


def test_no_module_asks_the_package_for_what_a_module_of_it_has(imports):
    """That is for users; within, it would make a circle of everything."""
    assert [module for module, targets in imports.items() if "" in targets] == []


@pytest.mark.parametrize(
    ("of", "never"),
    [
        ("agents", {"environments", "engines", "specification", "config", "runs"}),
        ("engines", {"specification", "config", "runs"}),
        ("environments", {"agents", "engines", "config", "runs"}),
        ("figures", {"agents", "engines", "config", "runs"}),
        ("tables", {"agents", "engines", "config", "runs"}),
        ("claims", {"agents", "engines", "config", "runs"}),
        ("report", {"agents", "engines", "config", "runs"}),
        ("analysis", {"agents", "engines", "config", "runs"}),
        ("storage", set().union(*LAYERS) - {"errors", "compilation", "storage"}),
    ],
)
def test_what_a_part_never_knows_of(imports, of, never):
    """Not even over others."""
    known, ahead = set(), [module for module in imports if part(module) == of]
    while ahead:
        targets = imports[ahead.pop()] - known
        known |= targets
        ahead += targets
    assert not {part(module) for module in known} & never
