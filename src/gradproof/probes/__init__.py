"""The probes: each looks for one family of traps, on its own, and says what it tried."""

from __future__ import annotations

from gradproof.probe import Probe
from gradproof.probes import (
    accumulation,
    compiled,
    composition,
    contract,
    determinism,
    graph,
    layouts,
    poison,
    precision,
    sizes,
    values,
    writes,
)

# Poison and determinism first: where they fail, no other number means anything.
_MODULES = (
    poison,
    determinism,
    contract,
    graph,
    writes,
    values,
    accumulation,
    layouts,
    sizes,
    precision,
    composition,
    compiled,
)

PROBES: dict[str, Probe] = {module.PROBE.name: module.PROBE for module in _MODULES}
