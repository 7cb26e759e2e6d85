"""An import contract: packages are used through their fronts, never through the modules inside."""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class FrontsContract(Contract):
    """No import from outside a package of `container` reaches a module inside that package."""

    type_name = "fronts"
    container = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Look at each direct import of each module below the packages."""
        bypasses = [
            f"{importer} imports {inner} instead of {package}"
            for package in sorted(graph.find_children(str(self.container)))
            for inner in sorted(graph.find_descendants(package))
            for importer in sorted(graph.find_modules_that_directly_import(inner))
            if importer != package and not importer.startswith(f"{package}.")
        ]
        return ContractCheck(kept=not bypasses, metadata={"bypasses": bypasses})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each import that bypasses a front."""
        for line in check.metadata["bypasses"]:
            output.print_error(line)
