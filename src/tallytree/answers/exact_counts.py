"""Exact numbers of any size from their residues modulo primes below 2^31."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice


def primes_for(bits: float) -> list[int]:
    """Return primes whose product has at least this many bits, largest first.

    Examples
    --------
    >>> primes_for(40)
    [2147483647, 2147483629]
    """
    return list(islice(_primes(), 1 + int(bits / 30.9)))


def _primes() -> Iterator[int]:
    """Yield the primes below 2^31, largest first."""
    return (n for n in range(2**31 - 1, 2, -2) if _is_prime(n))


def _is_prime(n: int) -> bool:
    """Miller-Rabin test with bases that are deterministic for every n below 3.2e9."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(n, base, odd, twos) for base in (2, 3, 5, 7) if n % base)


def _passes(n: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, n)
    if power in (1, n - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % n
        if power == n - 1:
            return True
    return False


def from_residues(primes: Sequence[int], residues: Sequence[Sequence[int]]) -> list[int]:
    """Return the numbers below the product of the primes that have these residues."""
    totals, product = list(residues[0]), primes[0]
    for prime, row in zip(primes[1:], residues[1:], strict=True):
        inverse = pow(product, -1, prime)
        totals = [
            total + product * ((residue - total) * inverse % prime)
            for total, residue in zip(totals, row, strict=True)
        ]
        product *= prime
    return totals
