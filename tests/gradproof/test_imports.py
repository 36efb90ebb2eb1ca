"""gradproof imports torch and the standard library, nothing else."""

import ast
import sys

ALLOWED = {"torch", "gradproof", *sys.stdlib_module_names}


def test_only_torch(root):
    found = {}
    for path in (root / "src" / "gradproof").rglob("*.py"):
        # The helper for pytest imports it inside the function that a test file calls.
        allowed = ALLOWED | ({"pytest"} if path.name == "testing.py" else set())
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                if name.split(".")[0] not in allowed:
                    found.setdefault(name, []).append(path.name)
    assert found == {}
