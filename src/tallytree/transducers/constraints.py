"""Regular constraints: the labellings that a machine accepts, for ``where=``."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, final

from tallytree.errors import InfeasibleError, ModelError
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction, as_reduction
from tallytree.statistics.constraints import Constraint, Reducing
from tallytree.transducers.automata import Nfa
from tallytree.transducers.chunks import ValidChunks
from tallytree.transducers.encodings import EncodingName, alphabets_of, transduced
from tallytree.transducers.machine import Complement, Machine
from tallytree.transducers.patterns import compiled
from tallytree.values import counted


@final
@dataclass(frozen=True, repr=False)
class Regular(Reducing):
    """The labellings that a machine accepts; returned by :func:`regular` and :func:`valid_bio`.

    It can be joined by ``&`` with other constraints, and is enforced by a model that has no other labellings;
    ``~`` negates it.
    """

    machine: Machine
    text: str = field(compare=False)

    def reduce(self, reduction: Reduction) -> Reduction:
        """Return a further reduction, restricted to the labellings that the machine accepts."""
        try:
            return transduced(reduction, self.machine)
        except InfeasibleError:
            size = len(reduction.original)
            raise InfeasibleError(f"no labelling of {counted(size, 'variable')} satisfies '{self}'") from None

    def accepts(self, labels: Iterable[Hashable]) -> bool:
        """Whether a sequence of labels is accepted."""
        return self.machine.run(labels) is not None

    def satisfied(self, model: Model, labelling: Any) -> bool:
        """Whether a labelling of a model satisfies it."""
        codes = model.encode(labelling).tolist()
        return self.accepts(labels[code] for labels, code in zip(alphabets_of(model), codes, strict=True))

    def __and__(self, other: Constraint) -> Constraint:
        if isinstance(other, Regular):  # one machine for both reaches fewer states than two in sequence
            return Regular(self.machine & other.machine, f"({self.text}) & ({other.text})")
        return super().__and__(other)

    def __invert__(self) -> Constraint:
        if isinstance(self.machine, Complement):
            return Regular(self.machine.machine, self.text.removeprefix("~"))
        return Regular(
            Complement(self.machine), f"~{self.text}" if "&" not in self.text else f"~({self.text})"
        )

    def __repr__(self) -> str:
        return self.text


def regular(language: str | Machine | Nfa) -> Regular:
    """Require labellings to match a regular expression over labels, or to be accepted by an automaton.

    Parameters
    ----------
    language : str, Machine or Nfa
        A pattern (see :mod:`tallytree.transducers.patterns` for the syntax): labels by name, or by
        number on models without names, separated by spaces, with ``|``, ``*``, ``+``, ``?``, ``{m,n}``,
        ``.``, ``[a b]``, ``[^ a b]`` and groups. Or a machine without outputs, or a non-deterministic
        automaton.

    Returns
    -------
    Constraint
        For ``where=``, alone or joined with others by ``&``; on chains.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain([[0, 1, 3], [2, 0, 4]], np.zeros((3, 3)), states=["O", "B-NP", "I-NP"])
    >>> tt.solve(model).labels
    array(['I-NP', 'I-NP'], dtype=object)
    >>> tt.solve(model, where=tt.regular("(O | B-NP I-NP*)*")).labels
    array(['B-NP', 'I-NP'], dtype=object)
    """
    if isinstance(language, Nfa):
        language = language.determinised()
    if isinstance(language, Machine):
        if language.outputs:
            raise ModelError(
                f"a constraint cannot use outputs, but this machine has the outputs "
                f"{', '.join(language.outputs)}; use tallytree.transduce(model, machine)"
            )
        return Regular(language, repr(language))
    return Regular(compiled(language), f"regular({language!r})")


def valid_bio(outside: str = "O") -> Regular:
    """Require valid BIO labellings: ``I-x`` follows only ``B-x`` or ``I-x``.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.valid_bio().accepts(["B-NP", "I-NP", "O"]), tt.valid_bio().accepts(["O", "I-NP"])
    (True, False)
    """
    return Regular(ValidChunks("BIO", outside), "valid_bio()")


def valid_bioes(outside: str = "O") -> Regular:
    """Require valid BIOES labellings: a chunk is ``S-x``, or ``B-x``, any number of ``I-x`` and ``E-x``.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.valid_bioes().accepts(["B-NP", "E-NP", "S-VP"]), tt.valid_bioes().accepts(["B-NP", "O"])
    (True, False)
    """
    return Regular(ValidChunks("BIOES", outside), "valid_bioes()")


def transduce(
    model: Model | Reduction,
    *machines: Machine | Regular,
    encoding: EncodingName | None = None,
    memory_limit: float | None = None,
) -> Reduction:
    """Combine a chain with machines, whose outputs become statistics.

    Parameters
    ----------
    model : Model or Reduction
        A chain, or a reduction of one.
    machines : Machine or Regular
        All of them must accept; their outputs are concatenated.
    encoding : {"pairs", "split"}, optional
        Whether states of a machine are part of the labels, or separate variables; by default whichever
        is cheaper.
    memory_limit : float, optional
        The memory limit for tables in bytes; by default half of the machine's memory.

    Returns
    -------
    Reduction
        It can be used in place of the model in ``profile``, ``solve``, ``distribution`` and ``k_best``:
        labellings are returned in terms of the original model, whose statistics can also be used.

    Raises
    ------
    ModelError
        The model is not a chain.
    InfeasibleError
        No labelling of this length is accepted.
    BudgetError
        There are too many states.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.zeros((4, 3)), np.zeros((3, 3)), states=["O", "B-NP", "I-NP"])
    >>> valid = tt.transduce(model, tt.valid_bio())
    >>> tt.distribution(valid, [tt.count(state="B-NP")]).counts
    (1, 10, 15, 7, 1)
    """
    reduction = as_reduction(model)
    for one in machines:
        machine = one.machine if isinstance(one, Regular) else one
        if not isinstance(machine, Machine):
            raise ModelError(f"transduce takes machines and regular constraints, got {one!r}")
        reduction = transduced(reduction, machine, encoding=encoding, memory_limit=memory_limit)
    return reduction
