"""The probes: each looks for one family of traps, on its own, and says what it tried."""

from __future__ import annotations

from gradproof.probe import Probe
from gradproof.probes.accumulation import ACCUMULATION
from gradproof.probes.compiled import COMPILED
from gradproof.probes.composition import COMPOSITION
from gradproof.probes.contract import CONTRACT
from gradproof.probes.determinism import DETERMINISM
from gradproof.probes.graph import GRAPH
from gradproof.probes.layouts import LAYOUTS
from gradproof.probes.poison import POISON
from gradproof.probes.precision import PRECISION
from gradproof.probes.sizes import SIZES
from gradproof.probes.values import VALUES
from gradproof.probes.writes import WRITES

# Poison and determinism first: where they fail, no other number means anything.
_IN_ORDER = (
    POISON,
    DETERMINISM,
    CONTRACT,
    GRAPH,
    WRITES,
    VALUES,
    ACCUMULATION,
    LAYOUTS,
    SIZES,
    PRECISION,
    COMPOSITION,
    COMPILED,
)

PROBES: dict[str, Probe] = {probe.name: probe for probe in _IN_ORDER}
