"""The `captures` command."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

try:
    import click

    from captures.fault import Faults
    from captures.project import Project
except KeyboardInterrupt:
    sys.stderr.write("captures: interrupted\n")
    sys.exit(130)

LAST_WORDS = "last-words.txt"  # in the cache, for `make site` to end with


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Run the examples, record what they said, and check that pages show nothing else."""


@cli.command("run")
@click.argument("examples", metavar="[EXAMPLE]...", nargs=-1)
@click.option("--machine", type=click.Choice(["gpu", "cpu"]), help="Default: the GPU if any.")
@click.option("--force", is_flag=True, help="Execute what already ran here; rewrite everything.")
@click.option("--check", is_flag=True, help="Execute all, write nothing, fail where claims differ.")
@click.option(
    "-j",
    "jobs",
    type=click.IntRange(1, 256),
    default=1,
    help="Examples at once; those with a measured cell follow one by one.",
)
def run_command(
    examples: Sequence[str], machine: str | None, force: bool, check: bool, jobs: int
) -> None:
    """Run EXAMPLEs (names, lesson directories or paths; default all) and record what they say."""
    from rich.console import Console

    from captures.check import refusals
    from captures.committed import moved_since_commit
    from captures.machine import probe
    from captures.memory import write_whole
    from captures.progress import Display, last_words
    from captures.run import run
    from captures.selection import select

    if force and check:
        raise click.UsageError("--force rewrites transcripts and --check writes nothing: take one")
    project = Project.find()
    try:
        names = select(project, examples)
    except Faults as faults:
        raise click.UsageError(str(faults)) from None
    here = probe(project, machine)
    display = Display(Console(highlight=False, width=None if sys.stdout.isatty() else 120))
    display.say(f"{here.kind}: {here.device}, torch {here.torch}, triton {here.triton}")
    with display.live:
        outcomes = run(project, names, here, force=force, check=check, jobs=jobs, watcher=display)
    executed = [outcome.example for outcome in outcomes if outcome.status in ("ran", "known")]
    refused = refusals(project, executed)
    moved = None if check else moved_since_commit(project, names, here.kind)
    said = last_words(outcomes, moved)
    write_whole(project.cache / LAST_WORDS, said + "\n")
    display.summary(project, outcomes, refused, said)
    sys.exit(bool(refused) or not all(outcome.ok for outcome in outcomes))


@cli.command("check")
@click.option("--release", is_flag=True, help="Stale or missing GPU runs are errors too.")
def check_command(release: bool) -> None:
    """Check scripts, transcripts and pages without executing anything."""
    from captures.check import check

    verdict = check(Project.find(), release)
    for warning in verdict.warnings:
        click.echo(f"warning: {warning}")
    for error in verdict.errors:
        click.echo(f"error: {error}")
    if verdict.remedy:
        click.echo(verdict.remedy)
    errors, warnings = len(verdict.errors), len(verdict.warnings)
    click.echo(f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}")
    sys.exit(bool(verdict.errors))


@cli.command("expand")
def expand_command() -> None:
    """Print every lesson as plain Markdown with runs, sources and values in place."""
    from captures.expand import expand

    click.echo(expand(Project.find()), nl=False)


def main() -> None:
    """Run the command; bad usage is one line and exit status 2, faults are a line each and 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # An example may say what this terminal cannot show.
            stream.reconfigure(errors="backslashreplace")
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"captures: {error.format_message()}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("captures: interrupted", err=True)
        sys.exit(130)
    except Faults as faults:
        click.echo(str(faults), err=True)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever reads has had enough; Python would complain once more as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        click.echo(f"captures: {error}", err=True)
        sys.exit(1)
