import pytest

from captures.fault import Faults
from captures.machine import environment, probe


def test_the_cpu_is_described(sandbox) -> None:
    machine = probe(sandbox.project, "cpu")
    assert machine.kind == "cpu"
    assert machine.memory == 0
    assert all(machine.provenance.values())


def test_without_torch_one_clear_line(sandbox) -> None:
    sandbox.write("src/torch.py", "raise ImportError('no torch here')\n")
    with pytest.raises(Faults, match="cannot run the examples: ImportError: no torch here"):
        probe(sandbox.project, None)


def test_a_gpu_that_is_not_there_is_refused(sandbox, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(Faults, match="no CUDA device; use --machine cpu"):
        probe(sandbox.project, "gpu")


def test_the_interpreter_is_chosen_by_kind(sandbox, monkeypatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "TRITON_INTERPRET" not in environment(sandbox.project, "gpu")
    monkeypatch.delenv("TRITON_INTERPRET")
    cpu = environment(sandbox.project, "cpu")
    assert cpu["TRITON_INTERPRET"] == "1"
    assert cpu["CUDA_VISIBLE_DEVICES"] == ""
    assert cpu["PYTHONPATH"].startswith(str(sandbox.project.src))
    assert "FORCE_COLOR" not in cpu
