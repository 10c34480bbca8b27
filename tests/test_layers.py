"""The import contracts of pyproject.toml hold, and each of them would notice a breach."""

import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from importlinter.api import read_configuration

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("models", "solver", "api")

# For each contract: a module, and an import that it must not contain.
BREACHES = [
    ("layers", "models/__init__.py", "import solver"),
    ("layers", "models/__init__.py", "import api"),
    ("layers", "solver/__init__.py", "import api"),
    ("backend", "solver/formulas/__init__.py", "import ortools"),
    ("backend", "solver/milp/__init__.py", "from ortools.sat.python import cp_model"),
    ("backend", "api/__init__.py", "import ortools.linear_solver.pywraplp"),
    ("verify", "solver/verify.py", "import solver.milp"),
    ("models", "models/__init__.py", "import networkx"),
    ("models", "models/__init__.py", "import ortools"),
]


def lint_imports(root: Path, *contracts: str) -> tuple[bool, str]:
    """Run import-linter in `root`, in a process of its own: whether the contracts hold, and its words."""
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
            "--no-logo",
            *(f"--contract={contract}" for contract in contracts),
        ],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.returncode == 0, run.stdout + run.stderr


def copy_of_the_code(target: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", target)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def test_the_contracts_hold() -> None:
    hold, words = lint_imports(ROOT)
    assert hold, words
    assert "0 broken" in words


def test_the_contracts_see_every_module() -> None:
    graph = grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)
    on_disk = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assert on_disk == {name for name in graph.modules if name.split(".")[0] in PACKAGES}
    assert graph.direct_import_exists(importer="solver", imported="models", as_packages=True)
    assert graph.direct_import_exists(importer="api", imported="solver", as_packages=True)
    assert graph.direct_import_exists(importer="solver.backend", imported="ortools", as_packages=True)


def test_every_contract_has_a_breach_below() -> None:
    contracts = read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]
    assert {contract["id"] for contract in contracts} == {contract for contract, _, _ in BREACHES}


@pytest.mark.parametrize(("contract", "module", "line"), BREACHES)
def test_a_breach_is_noticed(contract: str, module: str, line: str, tmp_path: Path) -> None:
    code = copy_of_the_code(tmp_path)
    with (code / module).open("a") as source:
        source.write(f"\n{line}\n")
    hold, words = lint_imports(code, contract)
    assert not hold, words
    assert "1 broken" in words


def test_a_roundabout_import_is_noticed(tmp_path: Path) -> None:
    code = copy_of_the_code(tmp_path)
    (code / "solver" / "detour.py").write_text("import solver.milp\n")
    with (code / "solver" / "verify.py").open("a") as source:
        source.write("\nimport solver.detour\n")
    hold, words = lint_imports(code, "verify")
    assert not hold, words
    assert "1 broken" in words
