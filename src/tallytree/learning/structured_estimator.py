"""Shared by all estimators: labels, the state of a fit, decoding and scoring."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tallytree.answers.tally_table import Where
from tallytree.bounds import PacBayesBound, pac_bayes
from tallytree.bulk.batch import one_each
from tallytree.bulk.jobs import Errors, check_errors
from tallytree.errors import ModelError
from tallytree.learning.decoding import BestDecoder, Decoder
from tallytree.learning.examples import brief, listed, of_each
from tallytree.learning.labels import Labels
from tallytree.learning.metrics import corpus_score
from tallytree.learning.parameters import check_parameters
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.progress import Callback, Progress, RunOptions
from tallytree.learning.recipes import RecipeEstimator
from tallytree.losses import HammingDistance, LabelCount, Loss, WeightedHamming, as_loss
from tallytree.statistics.constraints import Constraint, as_constraint
from tallytree.statistics.formula_constraints import as_condition_on
from tallytree.statistics.formulas import Formula
from tallytree.statistics.linear import Term
from tallytree.statistics.recipes import count
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import counted

_OF_A_COPY = (
    "This estimator is a copy made by clone(); a search such as GridSearchCV discards its copies and cannot "
    "resume, so run it again"
)


class Outcome(Protocol):
    """What all results of training have in common."""

    history: list[Progress]
    interrupted: bool


class StructuredEstimator(RecipeEstimator):
    """Base class of the estimators; use one of its subclasses."""

    loss: Loss | str | None
    tolerance: float
    max_passes: int
    max_seconds: float
    n_jobs: int | None
    warm_start: bool
    checkpoint: str | os.PathLike[str] | None
    verbose: bool

    weights_: np.ndarray
    history_: list[Progress]
    primal_: float
    dual_: float
    converged_: bool
    interrupted_: bool

    _noun = "labellings"
    _cloned = False  # whether scikit-learn made it, as searches do
    _before = 0.0  # seconds in the history from before the last fit, which resumed from a checkpoint

    # --- implemented by subclasses ------------------------------------------------------------------------

    def _read(self, X: Sequence[Any]) -> Sequence[Any]:
        """Return examples in the form from which features are learned and problems are made."""
        return X

    def _learn(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """Learn the labels and features of examples that have been read."""
        self.labels_ = Labels.of(y)
        self._learn_features(X)

    def _learn_features(self, X: Sequence[Any]) -> None:
        """Learn the features of examples, if there is anything to learn."""

    def _truths(self, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        """Return labellings in the form of the problem."""
        return list(of_each(y, self.labels_.encode))

    @abstractmethod
    def _fit(self, *data: Any) -> Outcome:
        """Learn weights and set all attributes of a fit; :meth:`_settle` decides whether they are kept."""

    @abstractmethod
    def _shortfall(self) -> tuple[str, str]:
        """Return where a fit ended that did not converge, and what helps besides a larger limit, if any."""

    @abstractmethod
    def _problem(self, X: Sequence[Any], truths: list[Any], loss: Loss) -> TrainingProblem:
        """Return the training problem."""

    @abstractmethod
    def _models(self, X: Sequence[Any]) -> Iterable[Any]:
        """Return the models of examples at the learned weights."""

    def _check_fit(self) -> None:
        """Raise an error for results from a file that are inconsistent."""
        weights = self.weights_
        if not isinstance(self.labels_, Labels) or not self.labels_.count:
            raise ModelError("it has no labels")
        if weights.dtype != np.float64 or weights.ndim != 1 or not np.isfinite(weights).all():
            raise ModelError("its weights are not a one-dimensional array of finite numbers")

    @property
    def _threads(self) -> int | None:
        """The number of threads for predictions; by default all."""
        return None

    # --- scikit-learn's interface --------------------------------------------------------------------------

    def _listed(self, X: Iterable[Any]) -> list[Any]:
        """Return examples as a list."""
        return listed(X, "X must be a sequence of examples")

    def _paired(self, X: Iterable[Any], y: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Return examples and their labellings as lists of the same length."""
        examples, truths = self._listed(X), listed(y, f"y must be a sequence of {self._noun}")
        if len(examples) != len(truths):
            pairs = counted(len(examples), "example"), counted(len(truths), self._noun.removesuffix("s"))
            are = "is" if len(examples) == 1 else "are"
            raise ModelError(f"there {are} {pairs[0]} but {pairs[1]}; each example needs one")
        return examples, truths

    def _some_paired(self, X: Iterable[Any], y: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Return the same; raise an error if there are no examples."""
        examples, truths = self._paired(X, y)
        if not examples:
            raise ModelError("there are no examples to learn from")
        return examples, truths

    def _run_options(self, show: Callback | None) -> RunOptions:
        return RunOptions(self.tolerance, self.max_passes, self.max_seconds, self.checkpoint, show)

    def _recipe(self) -> Loss:
        return HammingDistance() if self.loss is None else as_loss(self.loss)

    def _settle(self, *data: Any) -> Self:
        """Fit a copy of the estimator, and take over its attributes all at once, or not at all.

        They are kept if the fit ended, or if Ctrl-C stopped it after its first pass. Otherwise the estimator
        stays as it was, with the results of its last fit if there was one.
        """
        check_parameters(self.get_params(deep=False))
        trial = object.__new__(type(self))
        trial.__dict__.update(self.__dict__)
        try:
            outcome = trial._fit(*data)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._unchanged()) from None
        if outcome.interrupted and not outcome.history:
            raise KeyboardInterrupt(self._unchanged())
        self.__dict__.update(trial.__dict__)
        if self.interrupted_:  # raised again, so that it also stops the caller
            raise KeyboardInterrupt(self._how_to_resume())
        if not self.converged_:
            where, remedy = self._shortfall()
            advice = ", ".join(filter(None, (self._limit(), remedy, "or raise the tolerance")))
            warnings.warn(
                f"training stopped at {where}, above the tolerance of {self.tolerance:g}: the weights are "
                f"the best so far. To go further, {advice.removeprefix('or ')}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _limit(self) -> str:
        """Return the advice to raise the limit that ended the fit, if one did."""
        if len(self.history_) >= self.max_passes:
            return "raise max_passes"
        seconds = self.history_[-1].seconds if self.history_ else 0.0
        return "raise max_seconds" if seconds - self._before >= self.max_seconds else ""

    def __sklearn_clone__(self) -> Self:
        copy: Self = super().__sklearn_clone__()
        copy._cloned = True
        return copy

    def _unchanged(self) -> str:
        event = "training was interrupted before the first pass ended"
        if self._cloned and not hasattr(self, "weights_"):
            return f"{event}. {_OF_A_COPY}"
        state = "has the weights of the last fit" if hasattr(self, "weights_") else "is not fitted"
        return f"{event}. The estimator {state}; fit again"

    def _how_to_resume(self) -> str:
        written = self.checkpoint is not None and os.path.exists(self.checkpoint)  # after the first pass
        event = f"training was interrupted after {counted(len(self.history_), 'pass')}"
        if self._cloned and not written:
            return f"{event}. {_OF_A_COPY}"
        on = "fit again" if written else "set warm_start=True and fit again"
        source = f" from {os.fspath(self.checkpoint)}" if self.checkpoint is not None and written else ""
        return f"{event}. The estimator has the best weights so far and can predict; {on} to resume{source}"

    @property
    def gap_(self) -> float:
        """An upper bound on the distance of the training objective from its optimum, in its own units."""
        return self.primal_ - self.dual_

    @property
    def relative_gap_(self) -> float:
        """The gap divided by the objective, which is compared with ``tolerance`` and shown in reports."""
        return max(self.gap_, 0.0) / self.primal_ if self.primal_ > 0.0 else 0.0

    def predict(
        self,
        X: Sequence[Any],
        *,
        decode: Decoder | None = None,
        where: Where = None,
        errors: Errors = "raise",
    ) -> list[Any]:
        """Predict a labelling for each example.

        Parameters
        ----------
        X : sequence of examples
        decode : Decoder, optional
            :class:`BestDecoder` by default; :class:`KBestDecoder` returns lists, :class:`ExpectedFBeta` the
            labelling with the largest expected F.
        where : Constraint, str, or list of these, optional
            A constraint on every labelling, such as ``tt.count(state="B-NP") >= 1``, or a list with one for
            each example. In a string, a label is the number of positions that have it: ``"O <= 3 and 'B-NP'
            >= 1"``. To limit chunks from above, add ``tt.valid_bio()``, because they may otherwise begin
            with an I-label: ``tt.valid_bio() & (tt.count(state="B-NP") <= 2)``.
        errors : {"raise", "return"}
            What to do if no labelling of an example satisfies the constraint, or if its tables exceed the
            memory limit: raise the first such error, or return each in place of the prediction.

        Raises
        ------
        InfeasibleError
            No labelling of an example satisfies the constraint, unless ``errors="return"``.
        """
        check_is_fitted(self, "weights_")
        decoder = BestDecoder() if decode is None else decode
        if not hasattr(decoder, "each") or isinstance(decoder, type):
            got = f"the class {decode.__name__}; call it" if isinstance(decode, type) else repr(decode)
            raise ModelError(f"decode= needs a decoder, such as MaxExpected('chunk-f1'); got {got}")
        check_errors(errors)
        examples, conditions = self._listed(X), self._condition(where)
        if isinstance(conditions, list):
            conditions = list(one_each(conditions, len(examples), "where", Constraint, "example"))
        predictions = self._predicted(examples, decoder, conditions, errors)
        self._check_scale(decoder)
        return predictions

    def _check_scale(self, decoder: Decoder) -> None:
        """Warn about a decoder that takes scores for log-probabilities, if they are not."""

    def _condition(self, where: Any) -> Any:
        """Return a constraint, or one for each example; strings are read."""
        if isinstance(where, (list, tuple)):
            return [self._condition(one) for one in where]
        if where is None or isinstance(where, Constraint):
            return where
        if isinstance(where, (bool, np.bool_)):
            return as_constraint(where)  # an error that explains `a == b`
        if not isinstance(where, str):
            more = "; compare it with a number" if isinstance(where, (Statistic, Recipe)) else ""
            raise ModelError(
                f"where= needs a constraint, such as tt.count(state='B-NP') >= 2; got {brief(where)}{more}"
            )
        if self.labels_.names is None:
            raise ModelError(
                f"where={where!r} uses labels by name, but the labels are numbers; use a constraint such as "
                "tt.count(state=1) <= 2"
            )
        return as_condition_on("where", Formula(where), [], self.labels_.names, self._count)

    def _count(self, label: str) -> Term:
        """Return the statistic that a label stands for in a constraint given as a string."""
        return count(state=label, name=label)

    def _predicted(self, X: Sequence[Any], decoder: Decoder, where: Where, errors: Errors) -> list[Any]:
        return decoder.each(self._models(X), where, errors)

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Return the score of predictions that corresponds to the loss of the fit; see :func:`corpus_score`.

        That is F over all examples for F losses, and the fraction of correct labels for Hamming losses.
        """
        X, y = self._paired(X, y)
        loss, found = self._recipe(), self.predict(X)
        if isinstance(loss, (LabelCount, WeightedHamming)):  # they are on the numbers of labels
            y, found = (list(of_each(some, self.labels_.encode)) for some in (y, found))
        return corpus_score(map(np.asarray, y), found, loss)

    def bound(
        self, X: Sequence[Any], y: Sequence[Any], delta: float = 0.05, *, loss: Loss | None = None
    ) -> PacBayesBound:
        """Bound the expected loss of the learned weights on unseen examples; printing the result explains it.

        Parameters
        ----------
        X, y
            Examples and their labellings; the training examples may be used.
        delta : float
            The probability that the bound fails.
        loss : Loss, optional
            A loss between 0 and 1; the loss of the fit by default.
        """
        check_is_fitted(self, "weights_")
        X, y = self._paired(X, y)
        return pac_bayes(
            self._models(X),
            y,
            self._recipe() if loss is None else as_loss(loss),
            squared_norm=float(self.weights_ @ self.weights_),
            dimension=len(self.weights_),
            delta=delta,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")
