"""Give parameters documented together, as in ``name, cap``, their own types and defaults in the reference.

An extension of griffe, which reads the sources for mkdocs: it would give all of them those of the first, and
repeat the description in every row.
"""

from typing import Any

import griffe

REPEATED = 60  # longer descriptions are shown once


class OwnDefaults(griffe.Extension):
    """Corrects the parameters of every docstring once the package has been read."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Visit the package."""
        self._visit(pkg)

    def _visit(self, item: griffe.Object) -> None:
        for member in item.members.values():
            if not member.is_alias:
                self._visit(member)
        written = item.is_function or "__init__" in item.members  # dataclasses get their signature later
        if written and item.docstring is not None:
            for section in item.docstring.parsed:
                if isinstance(section, griffe.DocstringSectionParameters):
                    self._correct(section.value, item.parameters)

    @staticmethod
    def _correct(documented: list[griffe.DocstringParameter], signature: griffe.Parameters) -> None:
        borrowed = [known.annotation for known in signature if known.annotation is not None]
        first: dict[str, str] = {}
        for parameter in documented:
            if parameter.name in signature:
                known = signature[parameter.name]
                parameter.value = known.default
                if any(parameter.annotation is annotation for annotation in borrowed):
                    parameter.annotation = known.annotation
            described = first.setdefault(parameter.description, parameter.name)
            if described != parameter.name and len(parameter.description) > REPEATED:
                parameter.description = f"See `{described}`."
