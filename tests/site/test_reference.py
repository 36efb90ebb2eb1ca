"""What the written pages say of commands is what the commands are."""

import re
import subprocess
from pathlib import Path

import pytest

from captures.cli import cli

ROOT = Path(__file__).parents[2]


def test_the_captures_page_names_each_command_and_option():
    page = (ROOT / "docs/reference/captures.md").read_text()
    assert set(re.findall(r"`captures (\w+)", page)) == set(cli.commands)
    options = {
        option
        for command in cli.commands.values()
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("-")
    }
    assert set(re.findall(r"`(--?\w+)", page)) == options


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/index.md"])
def test_each_make_target_that_a_page_names_exists(name):
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    targets = set(re.findall(r"make ([\w-]+)", listed.stdout))
    code = re.findall(r"`make ([\w-]+)|^make ([\w-]+)", (ROOT / name).read_text(), re.MULTILINE)
    assert {target for pair in code for target in pair if target} <= targets
