"""The machine an example runs on: what it is, and the environment that examples get there."""

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from captures.fault import Fault, Faults
from captures.project import Project


@dataclass(frozen=True)
class Machine:
    """``kind`` is "gpu" or "cpu"; ``memory`` is the GPU's, in GB. Missing software is "none"."""

    kind: str
    device: str
    driver: str
    torch: str
    triton: str
    python: str
    platform: str
    memory: int = 0

    @property
    def provenance(self) -> dict[str, str]:
        return {
            name: getattr(self, name)
            for name in ("device", "driver", "torch", "triton", "python", "platform")
        }


def probe(project: Project, kind: str | None) -> Machine:
    """Ask a process of its own, since torch is not imported here.

    ``kind`` None takes the GPU where torch sees one. Raises ``Faults`` where ``kind`` is "gpu"
    and there is none, or where torch cannot be imported.
    """
    child = subprocess.run(
        [sys.executable, "-m", "captures.machine"],
        env=environment(project, kind),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if child.returncode:
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        raise Faults([Fault("captures", 0, f"this machine cannot run the examples: {last}")])
    machine = Machine(**json.loads(child.stdout.splitlines()[-1]))
    if kind == "gpu" and machine.kind != "gpu":
        raise Faults([Fault("captures", 0, "torch sees no CUDA device; use --machine cpu")])
    return machine


def environment(project: Project, kind: str | None) -> dict[str, str]:
    """The environment of an example on a machine of this kind."""
    inherited = {key: value for key, value in os.environ.items() if key not in _COLOURS}
    path = os.pathsep.join(filter(None, [str(project.src), os.environ.get("PYTHONPATH")]))
    fixed = {
        "PYTHONPATH": path,
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "100",
    }
    if kind == "gpu":
        inherited.pop("TRITON_INTERPRET", None)
    if kind == "cpu":
        # One thread, since a sum's last bits depend on how many share it.
        fixed |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return inherited | fixed


_COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS")


def _describe() -> Machine:
    import torch

    software = (torch.__version__, _version("triton"), platform.python_version(), _platform())
    if not torch.cuda.is_available():
        return Machine("cpu", _processor(), "none, Triton's interpreter", *software)
    device = torch.cuda.get_device_properties(0)
    memory = int(device.total_memory / 1e9)
    return Machine("gpu", device.name, _driver(torch), *software, memory)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "none"


def _platform() -> str:
    libc = " ".join(platform.libc_ver()).strip()
    return ", ".join(filter(None, [f"{platform.system()} {platform.machine()}", libc]))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine() or "unknown")


def _driver(torch: object) -> str:
    smi = shutil.which("nvidia-smi")
    version = "unknown"
    if smi:
        query = [smi, "--query-gpu=driver_version", "--format=csv,noheader"]
        answer = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
        version = (answer.stdout.split() or [version])[0]
    return f"{version}, CUDA {torch.version.cuda}"  # type: ignore[attr-defined]


if __name__ == "__main__":
    print(json.dumps(asdict(_describe())))
