"""The inputs of the kernels for chains, in the form of C."""

from __future__ import annotations

import ctypes

from tallytree.torch.gpu.findings import Findings

_ADDRESS = ctypes.c_void_p


class Padded(ctypes.Structure):
    """The input of all kernels; see ``Padded`` in ``kernels/sentences.cuh``."""

    _fields_ = [
        *((name, _ADDRESS) for name in ("nodes", "weights", "start", "end", "lengths")),
        *((name, ctypes.c_int) for name in ("sentences", "positions", "shared")),
    ]


class Ends(ctypes.Structure):
    """A mask, or lengths, or neither; see ``Ends`` in ``kernels/looking.cuh``."""

    _fields_ = [("mask", _ADDRESS), ("lengths", _ADDRESS)]


class Total(ctypes.Structure):
    """Where the values of all sentences are added up; see ``Total`` in ``kernels/words.cuh``."""

    _fields_ = [("total", _ADDRESS), ("divisor", ctypes.c_double)]


class Likelihood(ctypes.Structure):
    """The input of ``likelihood`` in ``kernels/plain.cu``."""

    _fields_ = [
        ("given", Padded),
        ("ends", Ends),
        *((name, _ADDRESS) for name in ("labels", "upstream", "values", "slopes", "kept", "edges")),
        ("found", Findings),
        ("all", Total),
        ("apart", ctypes.c_int),
    ]


class Gathering(ctypes.Structure):
    """The input of ``gather`` in ``kernels/plain.cu``."""

    _fields_ = [
        ("given", Padded),
        ("gains", _ADDRESS),
        ("rate", ctypes.c_double),
        *((name, _ADDRESS) for name in ("slopes", "edges", "by_nodes", "by_weights", "by_start", "by_end")),
        *((name, ctypes.c_int) for name in ("uniform", "tables")),
        ("words", _ADDRESS),
    ]


class Labelled(ctypes.Structure):
    """The input of ``kernels/labellings.cu``."""

    _fields_ = [
        ("given", Padded),
        *((name, _ADDRESS) for name in ("labels", "others", "shares", "gains", "slopes", "edges", "words")),
        *(("by_weights", _ADDRESS), ("gain", _ADDRESS), ("rate", ctypes.c_double), ("counter", _ADDRESS)),
    ]


class Decoding(ctypes.Structure):
    """The input of ``kernels/decoding.cu``."""

    _fields_ = [("given", Padded), *((name, _ADDRESS) for name in ("scores", "choices", "labels"))]
    _fields_ += [("found", Findings)]


class Drawing(ctypes.Structure):
    """The input of ``kernels/draws.cu``."""

    _fields_ = [("given", Padded), *((name, _ADDRESS) for name in ("uniforms", "kept", "labels"))]
    _fields_ += [("found", Findings), ("draws", ctypes.c_int)]


NO_FINDINGS, NO_TOTAL = Findings(), Total()
