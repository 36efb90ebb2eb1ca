"""Say whether a backward is right and, if it is not, which trap it fell into.

>>> from gradproof import prove
>>> report = prove(my_op, (x, w), reference=lambda x, w: w * torch.nn.functional.silu(x))
>>> print(report)
>>> report.raise_if_failed()

Works on any differentiable callable, on a GPU or in Triton's interpreter, and imports only torch.
"""

from gradproof.case import Case
from gradproof.prove import prove
from gradproof.report import Finding, ProbeResult, Report
from gradproof.traps import TRAPS, Trap

__all__ = ["TRAPS", "Case", "Finding", "ProbeResult", "Report", "Trap", "prove"]
