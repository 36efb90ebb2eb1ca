# needs: torch
"""Predict from a data sheet how much work recomputing may cost before saving is cheaper."""

# %% machines
import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    bandwidth: float  # bytes per second
    rates: dict[str, float]  # operations per second of each unit


MACHINES = {
    "H100": Machine(3.35e12, {"tensor": 490e12, "fp32": 67e12, "special": 4.18e12}),
    "H200": Machine(4.8e12, {"tensor": 989e12, "fp32": 67e12, "special": 4.18e12}),
    "A100": Machine(2.039e12, {"tensor": 312e12, "fp32": 19.5e12, "special": 2.44e12}),
    "L4": Machine(0.3e12, {"tensor": 121e12, "fp32": 30.3e12, "special": 1.89e12}),
}
for name, machine in MACHINES.items():
    print(f"{name}-bandwidth: {machine.bandwidth / 1e12:g} TB/s")
    for unit, rate in machine.rates.items():
        print(f"{name}-{unit}: {rate / 1e12:g} T/s")


# %% cost
def save_seconds(elements, saved_bytes, bandwidth):
    """Write every element in the forward, read it back in the backward."""
    return elements * 2 * saved_bytes / bandwidth


def recompute_seconds(elements, operations, rate):
    return elements * operations / rate


def crossover(saved_bytes, bandwidth, rate):
    """Operations per element at which both cost the same; the number of elements cancels."""
    return 2 * saved_bytes * rate / bandwidth


def verdict(elements, operations, saved_bytes, bandwidth, rate):
    save = save_seconds(elements, saved_bytes, bandwidth)
    recompute = recompute_seconds(elements, operations, rate)
    if math.isclose(save, recompute, rel_tol=1e-9):
        return "equal"
    return "recompute" if recompute < save else "save"


# %% table
for name, machine in MACHINES.items():
    for unit, rate in machine.rates.items():
        operations = crossover(2, machine.bandwidth, rate)
        print(f"{name}-{unit}: {round(operations, 1 if operations < 100 else 0):g}")

# %% unit-decides
h100 = MACHINES["H100"]
for unit, rate in h100.rates.items():
    answers = [verdict(2**20, work, 2, h100.bandwidth, rate) for work in (3, 40, 300, 1000)]
    print(f"{unit}, 3, 40, 300, 1000 operations: {', '.join(answers)}")


# %% overlap
def overlapped_crossover(tensor_bytes, bandwidth, rate):
    """The same where work hides behind traffic: it is felt once it outlasts the backward that
    saves, which moves four tensors (dy, x and the saved one in, dx out)."""
    return 4 * tensor_bytes * rate / bandwidth


h200 = MACHINES["H200"]
for unit in ("fp32", "special"):
    print(f"{unit}-overlapped: {overlapped_crossover(2, h200.bandwidth, h200.rates[unit]):.3g}")
