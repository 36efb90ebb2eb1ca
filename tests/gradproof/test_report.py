"""A report names traps by stable names, the most telling first, and says what to do."""

import re

import pytest
import torch

from gradproof import TRAPS, Finding, ProbeResult, Report, prove
from gradproof.probes import PROBES
from gradproof.traps import GALLERY


def report_of(*findings):
    return Report("op(x)", tuple(ProbeResult(f.probe, (f,)) for f in findings))


def test_traps_are_kebab_case_and_link_to_the_gallery():
    for name, trap in TRAPS.items():
        assert name == trap.name
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
        assert trap.link.endswith(f"trap-gallery/#{name}")
        assert set(trap.brings) <= set(TRAPS)


def test_a_generic_trap_gives_way_to_a_telling_one():
    wrong = Finding("wrong-gradient", "dx is wrong", about="dx", probe="values")
    cause = Finding("dy-ignored", "the same with 3·dy", about="dx", probe="values")
    assert report_of(wrong, cause).traps == ("dy-ignored",)
    assert report_of(wrong).traps == ("wrong-gradient",)


def test_what_a_trap_brings_is_left_out():
    cause = Finding("writes-into-grad", "w has a .grad", probe="accumulation")
    consequence = Finding("microbatches-disagree", "twice is not twice", probe="accumulation")
    assert report_of(consequence, cause).traps == ("writes-into-grad",)
    assert report_of(consequence).traps == ("microbatches-disagree",)


def test_the_report_says_trap_evidence_mend_and_link(square):
    text = str(prove(lambda x: square(x) * 1, (torch.randn(2, 3),), reference=torch.exp))
    assert "wrong-forward: the forward is not the reference's" in text
    assert re.search(r"y is wrong at 6 of 6 places, by up to [\d.]+ at \[\d, \d\]", text)
    assert "usual mend: mend the forward first" in text
    assert f"see {TRAPS['wrong-forward'].link}\n" in text
    assert max(len(line) for line in text.splitlines() if "https:" not in line) <= 100


def test_the_link_leads_to_the_published_site(root):
    (site,) = re.findall(r"^site_url: (\S+)$", (root / "mkdocs.yml").read_text(), re.MULTILINE)
    assert site + "lessons/trap-gallery/" == GALLERY
    assert (root / "docs" / "lessons" / "trap-gallery.md").is_file()


def test_raise_if_failed(square):
    x = torch.randn(2, 3)
    prove(square, (x,), reference=torch.square, probes=["values"]).raise_if_failed()
    with pytest.raises(AssertionError, match="wrong-forward"):
        prove(square, (x,), reference=torch.exp, probes=["values"]).raise_if_failed()


def test_probes_are_listed_and_switchable(square):
    x = torch.randn(2, 3)
    asked = ["sizes", "values"]
    report = prove(square, (x,), reference=torch.square, probes=asked)
    assert {r.probe for r in report.results} == set(asked)
    default = {name for name, probe in PROBES.items() if not probe.on_request}
    assert {r.probe for r in prove(square, (x,), reference=torch.square).results} == default
