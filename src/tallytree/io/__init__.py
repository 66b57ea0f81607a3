"""Files: models in the formats that other tools write."""

from .uai import read_uai, write_uai

__all__ = ["read_uai", "write_uai"]
