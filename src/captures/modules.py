"""The modules that a page can show, by their dotted names."""

from pathlib import Path

from captures.project import Project


def _roots(project: Project) -> tuple[Path, ...]:
    """Where modules lie: examples may share a helper that lies beside them."""
    return project.src, project.examples


def module_path(name: str, project: Project) -> Path | None:
    """The file of the module with this dotted name; None where there is none."""
    paths = [root.joinpath(*name.split(".")) for root in _roots(project)]
    files = [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in paths]
    return next(filter(Path.is_file, files), None)


def module_names(project: Project) -> list[str]:
    """Every module by its dotted name."""
    return [_dotted(path, root) for root in _roots(project) for path in root.rglob("*.py")]


def _dotted(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
