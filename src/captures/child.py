"""Inside the process of one example: run its cells one by one in one namespace.

Only the standard library is imported here, and whatever the example itself imports. What is
learnt of it comes through file descriptors that the job names: events as JSON lines (each
answered by one byte), and the stacks of a crash or a hang.
"""

import __future__

import contextlib
import ctypes
import faulthandler
import json
import linecache
import os
import resource
import signal
import sys
import traceback
import types
from pathlib import Path
from typing import Any

_FUTURES = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})


def main(job: dict[str, Any]) -> int:
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _unbuffer_c_stdout()
    faulthandler.enable(job["stacks"], all_threads=False)
    # The parent asks for the stack of an example that hangs before it kills it.
    faulthandler.register(signal.SIGUSR1, job["stacks"], all_threads=False)
    namespace = _become_main(job["script"], job["text"])
    flags = 0
    for cell in job["cells"]:
        _tell(job, event="begin", cell=cell["name"])
        try:
            flags = _execute(cell, job["script"], flags, namespace)
            _finish_device()
            figures = _save_figures(cell["name"], Path(job["figures"]))
            _flush()
        except BaseException as error:
            with contextlib.suppress(Exception):
                _flush()
            _tell(job, event="raised", **_describe(error, job["script"]))
            return 1
        _tell(job, event="end", figures=figures)
    _tell(job, event="done")
    return 0


def _execute(cell: dict[str, Any], script: str, flags: int, namespace: dict[str, Any]) -> int:
    # Blank lines in front give every line the number it has in the file.
    source = "\n" * (cell["first_line"] - 1) + cell["source"]
    code = compile(source, script, "exec", flags, dont_inherit=True)
    exec(code, namespace)
    return flags | code.co_flags & _FUTURES


def _become_main(script: str, text: str) -> dict[str, Any]:
    """A ``__main__`` as ``python script.py`` would make it, so that sources can be inspected."""
    module = types.ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    sys.argv = [script]
    sys.path[0] = str(Path(script).parent)
    # With no modification time the entry stays, should the file be edited meanwhile.
    linecache.cache[script] = (len(text), None, text.splitlines(keepends=True), script)
    return module.__dict__


def _finish_device() -> None:
    """Wait for the GPU, so that its errors and its prints belong to the cell that made them."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _save_figures(cell: str, directory: Path) -> list[str]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    names = []
    for count, number in enumerate(pyplot.get_fignums(), 1):
        name = f"{cell}.svg" if count == 1 else f"{cell}.{count}.svg"
        pyplot.figure(number).savefig(
            directory / name, format="svg", metadata={"Date": None, "Creator": None}
        )
        names.append(name)
    pyplot.close("all")
    return names


def _describe(error: BaseException, script: str) -> dict[str, Any]:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    ours = [index for index, frame in enumerate(frames) if frame.filename == script]
    line = frames[ours[-1]].lineno if ours else None
    if not ours and isinstance(error, SyntaxError):
        line = error.lineno
    stack = traceback.StackSummary.from_list(frames[ours[0] :] if ours else frames)
    first, _, rest = _message(error).partition("\n")
    summary = f"raised {first}"
    if isinstance(error, SystemExit):
        is_status = isinstance(error.code, int | None)
        status = error.code or 0 if is_status else first.partition(": ")[2]
        summary = f"left with exit status {status} before its last cell ended"
    return {"line": line, "error": summary, "stack": "".join(stack.format()) + rest}


def _message(error: BaseException) -> str:
    """Type and text of an error, without the source of a `SyntaxError` and without notes."""
    formatted = traceback.TracebackException.from_exception(error)
    formatted.__notes__ = None
    return list(formatted.format_exception_only())[-1].strip()


def _tell(job: dict[str, Any], **event: Any) -> None:
    try:
        os.write(job["events"], json.dumps(event).encode() + b"\n")
        # The answer comes when everything printed so far has been read.
        answer = os.read(job["answers"], 1)
    except OSError:
        answer = b""
    if not answer:
        sys.exit("captures: the example closed file descriptors that it had not opened")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception as error:
            message = f"sys.stdout or sys.stderr was left unable to flush: {error}"
            raise RuntimeError(message) from None
    ctypes.CDLL(None).fflush(None)


def _unbuffer_c_stdout() -> None:
    """Keep C's and Python's prints in order, and what C printed before a crash."""
    libc = ctypes.CDLL(None)
    for symbol in ("stdout", "__stdoutp"):
        try:
            stream = ctypes.c_void_p.in_dll(libc, symbol)
        except ValueError:
            continue
        no_buffer = 2
        libc.setvbuf(stream, None, no_buffer, 0)


def die_with_parent() -> None:
    """Be killed when the process that forked this one ends."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
