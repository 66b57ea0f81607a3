"""Threads and memory of the blocks that fill tables with counts."""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import NamedTuple

import torch

from tallytree.torch.gpu.chains import SMALL

_WIDE = 160
"""Columns of a position, on average, from which a search takes more threads."""
_TILES = {True: (28, 16), False: (24, 24)}
"""The maximum number of states of a tile if there is one, and if there are several; for searches and sums."""
_NARROW = 8
"""The states of a tile if there are more threads than columns."""
TEAMS = 1, 2, 4, 8
"""The numbers of blocks of a team."""
_WIDE_FOR_TEAMS = 768
"""Columns of the last position from which blocks form teams, which wait for each other at each position."""
WARPS = 4
"""Warps per block of a search by bounds, each of which takes a sentence."""
_MOST_LISTED = 1024
"""The maximum number of tallies that a search by bounds keeps of a sentence."""
_MET = 13
"""The labellings that it keeps, ``kPasses + 1`` in ``kernels/sweeps.cuh``."""
_REAL = {torch.float32: 4, torch.float64: 8}


class Sized(NamedTuple):
    """What the memory of a launch depends on."""

    states: int
    positions: int
    columns: int
    tallies: int
    extra_rows: int
    exceptions: int
    ways: int  # to continue a chunk
    by_position: bool  # whether positions are counted, relative to true tags
    chunks: bool
    real: torch.dtype
    most: bool
    spare: int  # blocks that the device can run for each sentence; 0 if there are many
    room: int  # shared memory of a block


class Layout:
    """Threads and memory of a block, which processes one sentence at a time.

    Attributes
    ----------
    tiles, padded : int
        The number of tiles of states, and the number of states rounded up to full tiles.
    columns : int
        The number of columns of its tables: of a sentence, and of two positions of a backward pass.
    bytes : int
        The size of its tables.
    memory, staged : int
        Its shared memory, and what a backward pass needs besides.
    threads : int
        About one per column, within limits. For few sentences, blocks are larger, so that the device is not
        idle.
    team : int
        The number of blocks that fill the tables of a sentence together.
    listed : int
        The number of tallies that a search by bounds keeps of a sentence; 0 if there is no such search, which
        is for counts of positions relative to true tags, the rows of shifts.
    """

    def __init__(self, size: Sized) -> None:
        self._size, states, real = size, size.states, _REAL[size.real]
        self.team = self._team()
        self.tiles = self._tiles()
        rows, self.padded = states + size.extra_rows, self.tiles * 4 * ceil(states / self.tiles / 4)
        self.columns = size.columns + 2 * size.tallies
        self.bytes = self.columns * rows * real
        self.memory = self._arrivals(real) if size.chunks and size.most else self._work(rows, real)
        self.threads = self._threads()
        self.staged = self._staged(self.threads)
        self._small = max(self.columns, rows * size.tallies) < 2**31
        self.listed = self._listed()

    def fits(self, gradient: bool) -> bool:
        """Return whether column numbers fit in 32 bits, and the weights of a step in a block's memory."""
        return self._small and self.memory + (self.staged if gradient else 0) <= self._size.room

    def _tiles(self) -> int:
        """Return the number of tiles: narrow ones if a small batch has threads for those of all columns."""
        size = self._size
        one, several = _TILES[size.most]
        narrow = ceil(size.states / _NARROW)
        if size.spare and size.most and narrow * self._widest <= self._search_threads():
            return narrow
        return 1 if size.states <= one else ceil(size.states / several)

    @property
    def _widest(self) -> int:
        """About the number of columns of the last position: boxes grow by as much at each."""
        return 2 * ceil(self._size.columns / self._size.positions)

    def _team(self) -> int:
        """Return as many blocks as a sentence with wide tables has to spare, up to a few."""
        if not self._size.most or self._widest < _WIDE_FOR_TEAMS:
            return 1
        return max(team for team in TEAMS if team <= max(self._size.spare, 1))

    def _search_threads(self) -> int:
        """Return the threads of a search for few sentences."""
        if self._size.tallies <= 64:
            return 256
        alone = self._size.chunks and self._size.real == torch.float32 and self.team == 1
        return 1024 if alone else 512

    def _threads(self) -> int:
        size = self._size
        if size.spare and size.most:
            return self._search_threads()
        if size.tallies <= 64:
            return 32
        if size.spare:
            threads = 256
        else:
            wide = size.columns > _WIDE * size.positions
            several = 512 if size.states > _TILES[True][0] else 256
            threads = several if size.most and wide and not size.chunks else 128
        while threads > 32 and not size.most and self._staged(threads) > size.room - self.memory:
            threads //= 2
        return threads

    def _work(self, rows: int, real: int) -> int:
        """Return the shared memory of a block: ``Work`` in ``kernels/counted.cuh``."""
        size, integers = self._size, 4 * (2 * self.padded + 4 * rows + 1)
        tables = ((size.states + 2) * self.padded + 4) * real
        return tables + size.exceptions * (24 + 2 * real) + integers + 16

    def _arrivals(self, real: int) -> int:
        """Return the shared memory of a search with chunks: ``Arrivals`` in ``kernels/gathering.cuh``."""
        size, padded, extra = self._size, self.padded, self._size.extra_rows
        steps = (extra + extra**2) * real
        turn = ceil((padded * real + steps + 4 * (2 * extra + 2)) / 16) * 16
        marks = 4 * size.positions * (1 + extra)
        return 2 * turn + (size.states + 1) * padded * real + size.ways * padded * (real + 4) + marks

    def _staged(self, threads: int) -> int:
        states = self._size.states
        tables = 8 * states * states if states <= SMALL else 0  # of derivatives for weights
        return threads // 32 * ((states + self.padded) * 33 * _REAL[self._size.real] + tables) + 16

    def _listed(self) -> int:
        size = self._size
        if not size.by_position or size.states > 256:
            return 0
        most = min(size.tallies, (size.positions + 1) * (size.positions + 2) // 2, _MOST_LISTED)
        return most if self.bounds_memory(most) <= size.room else 0

    def bounds_memory(self, listed: int) -> int:
        """Return the shared memory of a block of a search by bounds: ``Room`` in ``kernels/sweeps.cuh``."""
        states, positions = self._size.states, self._size.positions
        each = 24 * listed + 24 * _MET + 8 * states + ceil(positions * (states + 2) / 16) * 16
        return WARPS * ceil(each / 16) * 16


layout_of = lru_cache(maxsize=1024)(Layout)
"""The layout for a size."""
