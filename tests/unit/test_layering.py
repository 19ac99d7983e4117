"""Imports point one way: submitter -> infra.outputs <- infra, and nobody there knows the emulator."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def modules(*folders: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py"))


def imports(file: str) -> Iterator[str]:
    """Every module that a file names in an import, wherever the import stands, relative ones made absolute."""
    package = Path(file).parent.parts
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*parent, node.module) if node.module else parent)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def imports_of(file: str, package: str) -> set[str]:
    return {name for name in imports(file) if name == package or name.startswith(f"{package}.")}


def test_the_packages_are_where_these_tests_look() -> None:
    for folder in ("infra", "submitter", "emulator", "examples"):
        assert modules(folder), folder


@pytest.mark.parametrize("file", modules("submitter"))
def test_the_submitter_imports_nothing_of_infra_but_the_contract(file: str) -> None:
    """Importing the components would cost each command seconds for pulumi_aws."""
    assert {name for name in imports_of(file, "infra") if not name.startswith("infra.outputs")} == set()
    assert imports_of(file, "pulumi_aws") == set()


@pytest.mark.parametrize("file", modules("infra"))
def test_infra_imports_nothing_of_the_submitter(file: str) -> None:
    assert imports_of(file, "submitter") == set()


@pytest.mark.parametrize("file", modules("infra", "submitter"))
def test_the_product_neither_imports_nor_names_the_emulator(file: str) -> None:
    assert "emulator" not in (ROOT / file).read_text().lower()


@pytest.mark.parametrize("file", modules("infra", "submitter", "emulator", "examples", "benchmarks"))
def test_only_a_few_modules_of_the_emulator_import_moto(file: str) -> None:
    knowing = {"emulator/account.py", "emulator/instance_types.py", "emulator/server.py"}
    assert file in knowing or imports_of(file, "moto") == set()


@pytest.mark.parametrize("file", modules("examples"))
def test_an_example_is_a_users_program_and_imports_none_of_this(file: str) -> None:
    assert [name for package in ("infra", "submitter", "emulator", "tools") for name in imports_of(file, package)] == []


def test_the_contract_needs_the_standard_library_only() -> None:
    assert {name.split(".")[0] for name in imports("infra/outputs.py")} <= sys.stdlib_module_names


def test_importing_the_contract_runs_nothing_else() -> None:
    assert (ROOT / "infra/__init__.py").read_text() == ""
