"""Native planner and executor: arrays in, arrays out."""

import enum
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

UNCAPPED: int
SEARCH_SHARE: float
NO_LIMIT: int

class BudgetExceededError(Exception):
    step: int
    bytes: float

def interrupt_at(look: int, operations: float = 3e6) -> int: ...

class Algebra(enum.IntEnum):
    MAX_PLUS = 0
    LOG_SUM_EXP = 1
    COUNTING = 2

class Objective(enum.IntEnum):
    LIKELIHOOD = 0
    SOFTMAX_MARGIN = 1
    RISK = 2
    EVIDENCE = 3

class TallyMode(enum.IntEnum):
    AUTO = 0
    ROWS = 1
    CELLS = 2

class Purpose(enum.IntEnum):
    TABLES = ...
    PASSES = ...
    DRAFT = ...
    OUTLINE = ...
    LINKED = ...

class OrderMethod(enum.IntEnum):
    MIN_FILL = 0
    MIN_DEGREE = 1
    MIN_WEIGHT = 2
    NATURAL = 3
    SWEEP = 4
    MIN_TALLY = 5
    MIN_OPEN = 6

class Verb(enum.IntEnum):
    UNIT = 0
    JOIN = 1
    ELIMINATE = 2
    WORD = 3
    COMBINE = 4
    UNARY = 5

class DerivationStep(enum.IntEnum):
    WORD = 0
    UNARY = 1
    SPLIT = 2

class Shape:
    def __init__(
        self,
        cardinalities: NDArray[np.int32],
        scores: Sequence[NDArray[np.int32]],
        shifts: Sequence[NDArray[np.int32]],
        statistic_of: NDArray[np.int32],
        caps: NDArray[np.int64],
        scales: NDArray[np.int64],
    ) -> None: ...
    def order(self, method: OrderMethod, seed: int = 0) -> NDArray[np.int32]: ...
    def program(
        self, order: NDArray[np.int32], purpose: Purpose = ..., expected_steps: int = 0
    ) -> Skeleton: ...
    @property
    def is_forest(self) -> bool: ...
    @property
    def parts(self) -> int: ...

class Skeleton:
    def laid_out(self) -> Skeleton: ...
    @property
    def steps(self) -> NDArray[np.int32]: ...
    def step(self, number: int) -> tuple[list[int], list[int]]: ...
    @property
    def step_count(self) -> int: ...
    @property
    def drafted(self) -> bool: ...
    @property
    def variables(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def scope_begin(self) -> NDArray[np.int64]: ...
    @property
    def scope_data(self) -> NDArray[np.int32]: ...
    @property
    def score_refs(self) -> NDArray[np.int32]: ...
    @property
    def shift_refs(self) -> NDArray[np.int32]: ...
    @property
    def order(self) -> NDArray[np.int32]: ...
    @property
    def width(self) -> int: ...
    @property
    def degree(self) -> int: ...
    @property
    def cost(self) -> float: ...
    @property
    def pass_operations(self) -> float: ...
    @property
    def feasible(self) -> bool: ...

class Layout:
    def __init__(
        self,
        skeleton: Skeleton,
        shifts: Sequence[NDArray[np.int64]],
        caps: Sequence[int],
        low: Sequence[int],
        high: Sequence[int],
        mode: TallyMode,
        memory_limit: float,
        single: bool = False,
        segments: int = 0,
        operation_limit: float = ...,
    ) -> None: ...
    @property
    def bytes(self) -> int: ...
    @property
    def rows(self) -> bool: ...
    @property
    def operations(self) -> float: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def unrolled_bytes(self) -> int: ...
    @property
    def plan_bytes(self) -> int: ...
    @property
    def scratch_bytes(self) -> int: ...
    @property
    def answer_bytes(self) -> int: ...
    @property
    def most_tallies(self) -> int: ...
    @property
    def segments(self) -> int: ...
    @property
    def pruned(self) -> int: ...
    @property
    def costliest(self) -> int: ...
    @property
    def tables(self) -> NDArray[np.int64]: ...
    @property
    def step_operations(self) -> NDArray[np.float64]: ...

class Run:
    def __init__(
        self,
        layout: Layout,
        tables: Sequence[NDArray[np.float64]],
        algebra: Algebra,
        prime: int = 0,
        threads: int = 1,
        grain: float = 3e5,
        every: bool = False,
    ) -> None: ...
    @property
    def values(self) -> NDArray[np.float64]: ...
    def root(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
    @property
    def native_steps(self) -> int: ...
    def decode(self, cell: int) -> NDArray[np.int64]: ...
    def sample(self, cells: NDArray[np.int64], uniforms: NDArray[np.float64]) -> NDArray[np.int64]: ...
    def downward(self, weights: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def differentiate(self, weights: NDArray[np.float64]) -> list[NDArray[np.float64]]: ...

class SingleRun:
    def __init__(
        self,
        layout: Layout,
        tables: Sequence[NDArray[np.float64]],
        threads: int = 1,
        grain: float = 3e5,
    ) -> None: ...
    @property
    def values(self) -> NDArray[np.float64]: ...
    def root(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
    @property
    def native_steps(self) -> int: ...
    @property
    def overflowed(self) -> bool: ...
    def decode(self, cell: int) -> NDArray[np.int64]: ...

class LossTable:
    def __init__(
        self, losses: NDArray[np.float64], low: Sequence[int], slack: bool, margin: float
    ) -> None: ...

class TallySet:
    def __init__(self, allowed: NDArray[np.bool_], low: Sequence[int]) -> None: ...

class TruthTables:
    def __init__(
        self,
        labels: NDArray[np.int32],
        given: NDArray[np.int64],
        pairs: NDArray[np.int32],
        fits: NDArray[np.bool_],
        moved: NDArray[np.int64],
    ) -> None: ...

class Strategy(enum.Enum):
    AUTO = 0
    FULL = 1
    BOUNDS = 2

class Truths:
    def __init__(
        self,
        tables: TruthTables,
        kinds: NDArray[np.int64],
        labels: NDArray[np.int64],
        losses: Sequence[LossTable],
        folds: NDArray[np.float64],
        count: int,
        strategy: Strategy = ...,
        prices: NDArray[np.float64] | None = None,
    ) -> None: ...

class Batch:
    def __init__(self, mode: TallyMode, memory_limit: float) -> None: ...
    def hold(self, bytes: float) -> None: ...
    def add(
        self,
        skeleton: Skeleton,
        shifts: Sequence[NDArray[np.int64]],
        caps: Sequence[int],
        low: Sequence[int],
        high: Sequence[int],
        tables: Sequence[NDArray[np.float64]],
        shown_scopes: Sequence[NDArray[np.int32]],
        shown: Sequence[NDArray[np.int64]],
        asks: bool,
        strategy: Strategy = ...,
        allowed: TallySet | None = None,
    ) -> None: ...
    def add_models(
        self, skeletons: Sequence[Skeleton], tables: Sequence[NDArray[np.float64]], truths: Truths | None
    ) -> None: ...
    def add_chains(
        self,
        skeletons: Sequence[Skeleton],
        emissions: NDArray[np.float64],
        links: NDArray[np.float64],
        truths: Truths | None,
    ) -> None: ...
    def run(
        self,
        threads: int,
        choose: Callable[[int, NDArray[np.int64], NDArray[np.float64]], Sequence[int]] | None = None,
    ) -> None: ...
    def profile(self, threads: int) -> None: ...
    def expect(
        self, objective: Objective, importance: NDArray[np.float64], threads: int
    ) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]: ...
    def tally_sums(self, low: Sequence[int], extent: Sequence[int], threads: int) -> NDArray[np.float64]: ...
    def differentiate(
        self, gains: NDArray[np.float64], low: Sequence[int], threads: int
    ) -> list[NDArray[np.float64]]: ...
    @property
    def refused(self) -> NDArray[np.void]: ...
    @property
    def plain(self) -> list[bool]: ...
    def take_root(self, item: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
    def labellings(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.void]]: ...

class LossScaling(enum.Enum):
    NONE = 0
    MARGIN = 1
    SLACK = 2

class Need:
    def __init__(
        self,
        scaling: LossScaling,
        margin: float,
        truth: float,
        numerator: NDArray[np.float64],
        denominator: NDArray[np.float64],
        losses: NDArray[np.float64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        top: float = ...,
    ) -> None: ...

class BoundsOutcome:
    @property
    def ended(self) -> bool: ...
    @property
    def finished(self) -> bool: ...
    @property
    def impossible(self) -> bool: ...
    @property
    def value(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def slack(self) -> float: ...
    @property
    def prices(self) -> list[float]: ...
    @property
    def bands(self) -> int: ...
    @property
    def cells(self) -> int: ...
    @property
    def work(self) -> float: ...
    @property
    def tallies(self) -> NDArray[np.int64]: ...
    @property
    def scores(self) -> NDArray[np.float64]: ...
    @property
    def proven(self) -> list[tuple[list[float], float, list[int], list[int], float, int]]: ...
    @property
    def passes(self) -> list[tuple[list[float], float]]: ...
    @property
    def met(self) -> list[tuple[int, int]]: ...
    def labelling(self, row: int) -> NDArray[np.int64]: ...

def pass_price(skeleton: Skeleton) -> tuple[float, float, float]: ...
def search_by_bounds(
    skeleton: Skeleton,
    scores: Sequence[NDArray[np.float64]],
    counts: Sequence[NDArray[np.int64]],
    need: Need,
    starts: Sequence[NDArray[np.int64]],
    prices: NDArray[np.float64] | None,
    most_work: float,
    memory_limit: float,
) -> BoundsOutcome | None: ...
def relax_by_bounds(
    skeleton: Skeleton,
    scores: Sequence[NDArray[np.float64]],
    counts: Sequence[NDArray[np.int64]],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    most_passes: int,
    gap: float,
    bands: bool,
    progress: Callable[[int, float, float, list[float], NDArray[np.int64] | None], object] | None,
    memory_limit: float,
) -> BoundsOutcome | None: ...

class ChartSearch:
    def __init__(
        self,
        layout: ChartLayout,
        words: NDArray[np.float64],
        rules: NDArray[np.float64],
        paths: NDArray[np.float64],
        shifts: NDArray[np.int32],
        cell: float,
    ) -> None: ...
    @property
    def ends(self) -> NDArray[np.int64]: ...
    @property
    def magnitude(self) -> float: ...
    def run(
        self,
        need: Need,
        starts: Sequence[NDArray[np.int64]],
        prices: NDArray[np.float64] | None,
        most_work: float,
        memory_limit: float,
    ) -> BoundsOutcome | None: ...

class KBest:
    def __init__(self, run: Run, root_cells: NDArray[np.int64]) -> None: ...
    def next(
        self, count: int, room: float = ...
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]: ...
    @property
    def bytes(self) -> int: ...

def chain_sums(
    emissions: NDArray[np.float64],
    links: NDArray[np.float64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    importance: NDArray[np.float64],
    truths: NDArray[np.int64] | None,
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.uint8]]: ...
def chain_bends(
    emissions: NDArray[np.float64],
    links: NDArray[np.float64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    by_emissions: NDArray[np.float64],
    by_links: NDArray[np.float64],
    importance: NDArray[np.float64],
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.uint8]]: ...

class QuotientCounts:
    def __init__(
        self,
        errors: NDArray[np.float64],
        counted: NDArray[np.bool_],
        types: NDArray[np.int32],
        boundaries: NDArray[np.bool_],
        missed: float,
    ) -> None: ...

def chain_risks(
    emissions: NDArray[np.float64],
    links: NDArray[np.float64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    truths: NDArray[np.int64],
    counts: QuotientCounts,
    rules: NDArray[np.float64],
    which: NDArray[np.int64],
    importance: NDArray[np.float64],
    memory_limit: float,
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.uint8]]: ...
def chain_labels(
    emissions: NDArray[np.float64],
    links: NDArray[np.float64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]: ...
def chain_draws(
    emissions: NDArray[np.float64],
    links: NDArray[np.float64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    uniforms: NDArray[np.float64],
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]: ...
def chunks_of_least_loss(
    emissions: NDArray[np.float64],
    links: NDArray[np.float64],
    starts: NDArray[np.int64],
    types: NDArray[np.int32],
    boundaries: NDArray[np.bool_],
    base: NDArray[np.float64],
    gain: NDArray[np.float64],
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.void]] | None: ...
def chunks_above(
    emissions: NDArray[np.float64],
    links: NDArray[np.float64],
    starts: NDArray[np.int64],
    types: NDArray[np.int32],
    boundaries: NDArray[np.bool_],
    least: float,
    threads: int,
) -> NDArray[np.void] | None: ...

class NameTable:
    def __init__(self, names: list[str]) -> None: ...
    def read(
        self, examples: list[object], threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]] | None: ...

def chunk_numbers(
    emissions: NDArray[np.float64],
    links: NDArray[np.float64],
    starts: NDArray[np.int64],
    types: NDArray[np.int32],
    boundaries: NDArray[np.bool_],
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None: ...
def sparse_times(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
    table: NDArray[np.float64],
    threads: int,
) -> NDArray[np.float64]: ...
def block_inner(
    indices: NDArray[np.int64],
    values: NDArray[np.float64],
    ends: NDArray[np.int64],
    vector: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def least_plan_bytes(variables: int, factors: int, others: int = 0) -> float: ...
def estimate_memory(
    skeleton: Skeleton,
    shifts: Sequence[NDArray[np.int64]],
    caps: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    mode: TallyMode,
    memory_limit: float,
    single: bool = False,
) -> tuple[float, int, float, float]: ...
def table_price(
    skeleton: Skeleton,
    shifts: Sequence[NDArray[np.int64]],
    caps: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
) -> tuple[float, float, float, float]: ...
def least_tallies(
    skeleton: Skeleton,
    shifts: Sequence[NDArray[np.int64]],
    caps: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    mode: TallyMode,
) -> NDArray[np.float64]: ...
def give_memory_back() -> None: ...
def evaluate(
    cardinalities: NDArray[np.int32],
    score_scopes: Sequence[NDArray[np.int32]],
    scores: Sequence[NDArray[np.float64]],
    shift_scopes: Sequence[NDArray[np.int32]],
    shifts: Sequence[NDArray[np.int64]],
    assignment: NDArray[np.int64],
) -> tuple[float, float, int, list[int]]: ...
def join(a: NDArray[np.float64], b: NDArray[np.float64], repeats: int = 1) -> NDArray[np.float64]: ...
def launch_kernel(
    launch: int,
    function: int,
    blocks: int,
    threads: int,
    memory: int,
    stream: int,
    arguments: tuple[object, ...],
) -> int: ...
def use_instruction_set(name: str = "") -> None: ...
def improve_block(
    indices: NDArray[np.int64],
    values: NDArray[np.float64],
    ends: NDArray[np.int64],
    offsets: NDArray[np.float64],
    gram: NDArray[np.float64],
    alpha: NDArray[np.float64],
    weights: NDArray[np.float64],
    lag: NDArray[np.float64],
    lag_factor: float,
    steps: int,
    enough: float,
    rounding: float,
) -> float: ...

_SlopeArrays = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]

def grow_block(
    indices: NDArray[np.int64],
    values: NDArray[np.float64],
    ends: NDArray[np.int64],
    offsets: NDArray[np.float64],
    more_indices: NDArray[np.int64],
    more_values: NDArray[np.float64],
    more_offset: float,
    workspace: NDArray[np.float64],
) -> tuple[_SlopeArrays, NDArray[np.float64]] | None: ...
def take_slopes(
    indices: NDArray[np.int64],
    values: NDArray[np.float64],
    ends: NDArray[np.int64],
    kept: NDArray[np.int64],
) -> _SlopeArrays: ...
def merge_slopes(
    indices: NDArray[np.int64],
    values: NDArray[np.float64],
    ends: NDArray[np.int64],
    first: int,
    second: int,
    of_first: float,
    of_second: float,
) -> _SlopeArrays: ...

class SequenceMeasure(enum.Enum):
    BLEU = ...
    ROUGE_N = ...
    ROUGE_L = ...

_SequencePart = tuple[int, int, list[float], float, list[int], list[int], float, int]

class SequenceOutcome:
    @property
    def finished(self) -> bool: ...
    @property
    def value(self) -> float: ...
    @property
    def score(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def cells(self) -> int: ...
    @property
    def bytes(self) -> float: ...
    @property
    def labelling(self) -> NDArray[np.int64]: ...
    @property
    def reached(self) -> list[int]: ...
    @property
    def parts(self) -> list[_SequencePart]: ...
    @property
    def passes(self) -> list[_SequencePart]: ...
    @property
    def splits(self) -> list[NDArray[np.float64]]: ...
    @property
    def units(self) -> list[tuple[list[int], int, int]]: ...

class SequenceProblem:
    def __init__(
        self,
        unary: Sequence[NDArray[np.float64]],
        pair: Sequence[NDArray[np.float64]],
        alphabets: Sequence[NDArray[np.int32]],
        kinds: NDArray[np.int32],
        ends: NDArray[np.int32],
        references: Sequence[NDArray[np.int32]],
        measure: SequenceMeasure,
        order: int,
        clip: bool,
        beta: float,
    ) -> None: ...
    def search(
        self,
        scaling: LossScaling,
        margin: float,
        truth: float,
        starts: Sequence[NDArray[np.int64]],
        most_cells: float,
        memory_limit: float,
        few_cells: int,
    ) -> SequenceOutcome: ...

def spans(words: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def span_number(words: int, start: int, width: int) -> int: ...
def span_numbers(words: int, starts: NDArray[np.int64], widths: NDArray[np.int64]) -> NDArray[np.int64]: ...
def tree_sums(
    scores: NDArray[np.float64], lengths: NDArray[np.int64], threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.uint8]]: ...
def tree_draws(
    scores: NDArray[np.float64], lengths: NDArray[np.int64], uniforms: NDArray[np.float64], threads: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]: ...
def best_trees(
    scores: NDArray[np.float64], lengths: NDArray[np.int64], threads: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]: ...
def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...

class ChartGrammar:
    def __init__(
        self, symbols: int, bags: int, root: int, rules: NDArray[np.int32], paths: NDArray[np.int32]
    ) -> None: ...
    def items(
        self, words: NDArray[np.float64], rules: NDArray[np.float64], paths: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint8], float]: ...
    def items_bytes(self, words: int) -> float: ...

class ChartOutline:
    def __init__(
        self,
        grammar: ChartGrammar,
        words: int,
        shifts: NDArray[np.int32],
        caps: NDArray[np.int64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        items: NDArray[np.uint8],
    ) -> None: ...
    @property
    def least(self) -> tuple[float, float]: ...
    def layout(self, memory_limit: float) -> ChartLayout: ...

class ChartLayout:
    @staticmethod
    def plain(grammar: ChartGrammar, words: int, memory_limit: float) -> ChartLayout: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def plan_bytes(self) -> int: ...
    @property
    def items(self) -> int: ...
    @property
    def operations(self) -> float: ...
    @property
    def joined(self) -> float: ...
    @property
    def most_cells(self) -> int: ...
    @property
    def pruned(self) -> int: ...
    @property
    def steps(self) -> NDArray[np.int32]: ...
    @property
    def step_operations(self) -> NDArray[np.float64]: ...
    @property
    def cells(self) -> NDArray[np.int64]: ...
    @property
    def root_tallies(self) -> NDArray[np.int64]: ...

class ChartRun:
    def __init__(
        self,
        layout: ChartLayout,
        words: NDArray[np.float64],
        rules: NDArray[np.float64],
        paths: NDArray[np.float64],
        algebra: Algebra,
        prime: int = 0,
    ) -> None: ...
    def root(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
    def decode(self, cell: int) -> NDArray[np.int32]: ...
    def marginals(self) -> NDArray[np.float64]: ...
    def expectations(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
    def expectations_of(
        self, probabilities: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
    def sample(self, cells: NDArray[np.int64], uniforms: NDArray[np.float64]) -> list[NDArray[np.int32]]: ...
    @property
    def choices(self) -> int: ...

class ChartKBest:
    def __init__(self, run: ChartRun, root_cells: NDArray[np.int64]) -> None: ...
    def next(
        self, count: int, room: float = ...
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], list[NDArray[np.int32]]]: ...
    @property
    def bytes(self) -> int: ...
