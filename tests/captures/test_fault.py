from captures.fault import Fault, Faults


def test_a_fault_is_one_line_with_its_place() -> None:
    assert str(Fault("docs/a.md", 88, "is wrong")) == "docs/a.md:88: is wrong"
    assert str(Fault("docs/a.md", 0, "is missing")) == "docs/a.md: is missing"


def test_faults_are_sorted_by_place_and_said_once() -> None:
    late, early = Fault("b.md", 2, "x"), Fault("a.md", 10, "y")
    assert str(Faults([late, early, late])) == "a.md:10: y\nb.md:2: x"
