"""Which files belong together is decided by their names alone."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_tritonverify import discovery
from pytest_tritonverify.discovery import Findings, Pair, Selection

# Neither a deadline nor a verdict on speed: other work may load the machine.
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def split(folder: Path, implementation: str) -> tuple[str, str] | None:
    pair = discovery.pair_of(folder / implementation)
    return None if pair is None else (pair.op, pair.variant)


def walked(folder: Path) -> Findings:
    return discovery.walk([folder], lambda _: False)


# pair_of


@pytest.mark.parametrize(
    ("task", "implementation", "op", "variant"),
    [
        ("softmax_torch.py", "softmax_triton_ascend_impl.py", "softmax", "ascend_impl"),
        ("layer_norm_torch.py", "layer_norm_triton_v2.py", "layer_norm", "v2"),
        ("3d_conv_torch.py", "3d_conv_triton_1.py", "3d_conv", "1"),
        ("a_triton_b_torch.py", "a_triton_b_triton_c.py", "a_triton_b", "c"),
        ("a_torch.py", "a_triton_b_triton_c.py", "a", "b_triton_c"),
        ("a_triton_torch.py", "a_triton_triton_b.py", "a_triton", "b"),
        ("a_torch.py", "a_triton_triton_b.py", "a", "triton_b"),
        ("a__torch.py", "a__triton__b.py", "a_", "_b"),
        ("a_torch_torch.py", "a_torch_triton_b.py", "a_torch", "b"),
        ("op[1]_torch.py", "op[1]_triton_b.py", "op[1]", "b"),
        ("op*_torch.py", "op*_triton_b.py", "op*", "b"),
        ("算子_torch.py", "算子_triton_b.py", "算子", "b"),
        ("a.b_torch.py", "a.b_triton_c.d.py", "a.b", "c.d"),
    ],
)
def test_names_of_a_pair(
    tmp_path: Path, task: str, implementation: str, op: str, variant: str
) -> None:
    touch(tmp_path, task, implementation)

    pair = discovery.pair_of(tmp_path / implementation)

    assert pair == Pair(op, variant, tmp_path / task, tmp_path / implementation)
    assert pair.impl_name == f"triton_{variant}"
    assert pair.label == f"{op} (triton_{variant})"
    assert discovery.implementations_of(tmp_path / task) == [pair]
    assert walked(tmp_path) == Findings((pair,), (), ())


@pytest.mark.parametrize(
    "name",
    [
        "softmax.py",
        "softmax_triton.py",
        "softmax_triton_.py",
        "_triton_b.py",
        "softmax_triton_b.txt",
        "softmax_triton_b.pyc",
        "softmax_tritonb.py",
        "other_triton_b.py",
        "softmax_torch.py",
    ],
)
def test_names_of_no_pair(tmp_path: Path, name: str) -> None:
    touch(tmp_path, "softmax_torch.py", "_torch.py", name)
    assert discovery.pair_of(tmp_path / name) is None


def test_the_longest_operator_name_that_has_a_task_wins(tmp_path: Path) -> None:
    name = "a_triton_b_triton_c_triton_d.py"
    touch(tmp_path, name, "a_torch.py")
    assert split(tmp_path, name) == ("a", "b_triton_c_triton_d")
    touch(tmp_path, "a_triton_b_torch.py")
    assert split(tmp_path, name) == ("a_triton_b", "c_triton_d")
    touch(tmp_path, "a_triton_b_triton_c_torch.py")
    assert split(tmp_path, name) == ("a_triton_b_triton_c", "d")


def test_a_folder_is_no_task_and_no_implementation(tmp_path: Path) -> None:
    (tmp_path / "a_torch.py").mkdir()
    touch(tmp_path, "a_triton_b.py", "c_torch.py")
    (tmp_path / "c_triton_d.py").mkdir()

    assert discovery.pair_of(tmp_path / "a_triton_b.py") is None
    assert discovery.implementations_of(tmp_path / "c_torch.py") == []


def test_a_variant_may_be_called_torch(tmp_path: Path) -> None:
    touch(tmp_path, "a_torch.py", "a_triton_torch.py")

    found = walked(tmp_path)

    assert [(pair.op, pair.variant) for pair in found.pairs] == [("a", "torch")]
    assert found.lonely == ()


def test_a_task_with_implementations_is_none_itself(tmp_path: Path) -> None:
    touch(tmp_path, "a_torch.py", "a_triton_b.py", "a_triton_torch.py", "a_triton_triton_c.py")

    found = walked(tmp_path)

    assert [(pair.op, pair.variant) for pair in found.pairs] == [("a", "b"), ("a_triton", "c")]
    assert found.lonely == ()


WORDS = st.lists(
    st.sampled_from(["triton", "torch", "a", "b", "2", "", "[x]", "*", "?"]), min_size=1, max_size=6
).map("_".join)


@CALM
@given(stem=WORDS, tasks=st.sets(WORDS, max_size=6), take=st.sets(st.integers(0, 8)))
def test_pair_of_finds_the_split_that_has_a_task(
    stem: str, tasks: set[str], take: set[int]
) -> None:
    words = stem.split("_")
    splits = [
        ("_".join(words[:i]), "_".join(words[i + 1 :]))
        for i in range(1, len(words))
        if words[i] == "triton"
    ]
    ops = tasks | {op for k, (op, _) in enumerate(splits) if k in take}
    with tempfile.TemporaryDirectory() as name:
        folder = touch(Path(name), f"{stem}.py", *(f"{op}_torch.py" for op in ops))
        found = split(folder, f"{stem}.py")
        there = [(op, v) for op, v in splits if op and v and (folder / f"{op}_torch.py").exists()]

        expected = max(there, key=lambda s: len(s[0]), default=None)
        path = folder / f"{stem}.py"
        if expected is not None and discovery.is_task(path):
            assert found in (None, expected)
            assert (found is None) == bool(discovery.implementations_of(path))
        else:
            assert found == expected
        if found is not None:
            task = folder / f"{found[0]}_torch.py"
            assert path in [pair.implementation for pair in discovery.implementations_of(task)]


# Whole folders


def test_implementations_are_sorted_and_those_of_the_task_only(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "a_torch.py",
        "a_triton_z.py",
        "a_triton_b.py",
        "a_triton_b_torch.py",
        "a_triton_b_triton_c.py",
        "sub/a_triton_y.py",
    )
    variants = [pair.variant for pair in discovery.implementations_of(tmp_path / "a_torch.py")]
    assert variants == ["b", "z"]


def test_glob_characters_in_names_stand_for_themselves(tmp_path: Path) -> None:
    touch(tmp_path, "o?_torch.py", "op_torch.py", "op_triton_b.py", "[a-z]_torch.py", "a_triton_b")
    assert discovery.implementations_of(tmp_path / "o?_torch.py") == []
    assert discovery.implementations_of(tmp_path / "[a-z]_torch.py") == []


def test_half_pairs_are_told_with_what_they_lack(tmp_path: Path) -> None:
    touch(tmp_path, "a_torch.py", "sub/b_triton_c_triton_d.py", "sub/unrelated.py", "_triton_x.py")

    found = walked(tmp_path)

    assert found.pairs == ()
    assert found.lonely == (
        (tmp_path / "a_torch.py", "no implementation a_triton_<variant>.py beside it"),
        (
            tmp_path / "sub" / "b_triton_c_triton_d.py",
            "no task file b_triton_c_torch.py or b_torch.py beside it",
        ),
    )


@pytest.mark.parametrize(
    ("names", "alone", "hint"),
    [
        (
            ["scale_torch.py", "scale_ascend_triton.py"],
            "scale_torch.py",
            "is scale_ascend_triton.py meant to be scale_triton_ascend.py?",
        ),
        (
            ["scale_torch.py", "scale-triton.py"],
            "scale_torch.py",
            "is scale-triton.py meant to be scale_triton_ascend_impl.py?",
        ),
        (
            ["scale_triton_x.py", "Scale_torch.py"],
            "scale_triton_x.py",
            "is Scale_torch.py meant to be scale_torch.py?",
        ),
        (
            ["scale_triton_x.py", "Scale_torch.py"],
            "Scale_torch.py",
            "is scale_triton_x.py meant to be Scale_triton_x.py?",
        ),
        (["row_sum_torch.py", "row_min_triton_x.py", "row_sum.py"], "row_sum_torch.py", None),
        (["row_sum_torch.py", "row_triton_x.py"], "row_triton_x.py", None),
    ],
)
def test_half_pairs_are_told_what_a_misnamed_file_was_perhaps_meant_to_be(
    tmp_path: Path, names: list[str], alone: str, hint: str | None
) -> None:
    touch(tmp_path, *names)
    text = dict(walked(tmp_path).lonely)[tmp_path / alone]
    assert text.partition("; ")[2] == (hint or "")


def test_a_folder_is_asked_for_pairs_within_bounds(tmp_path: Path) -> None:
    touch(tmp_path, "a_torch.py", "a_triton.py", "sub/b_triton_x.py")
    assert not discovery.holds_pair(tmp_path)
    touch(tmp_path, "sub/deep/c_torch.py", "sub/deep/c_triton_x.py")
    assert discovery.holds_pair(tmp_path)
    assert not discovery.holds_pair(tmp_path, most=2)


def test_walking_finds_pairs_at_any_depth_once(tmp_path: Path) -> None:
    touch(tmp_path, "x/y/a_torch.py", "x/y/a_triton_b.py", "x/b_torch.py", "x/b_triton_c.py")
    touch(tmp_path, "x/conftest.py", "x/y/z/conftest.py", "conftest.txt")

    found = discovery.walk([tmp_path / "x", tmp_path / "x" / "y", tmp_path], lambda _: False)

    assert [pair.op for pair in found.pairs] == ["b", "a"]
    assert found.intruders == (
        tmp_path / "x" / "conftest.py",
        tmp_path / "x" / "y" / "z" / "conftest.py",
    )


def test_walking_leaves_out_what_is_ignored(tmp_path: Path) -> None:
    touch(tmp_path, "x/a_torch.py", "x/a_triton_b.py", "x/conftest.py")
    touch(tmp_path, "a_torch.py", "a_triton_b.py", "a_triton_c.py")

    found = discovery.walk([tmp_path], lambda path: path.name in ("x", "a_triton_c.py"))

    assert [pair.implementation for pair in found.pairs] == [tmp_path / "a_triton_b.py"]
    assert found.intruders == ()


@pytest.mark.parametrize(
    ("ops", "impls", "admitted"),
    [
        ((), (), True),
        (("soft*",), (), True),
        (("nothing", "softmax"), (), True),
        (("Softmax",), (), False),
        (("soft",), (), False),
        ((), ("triton_*",), True),
        ((), ("v2",), False),
        (("softmax",), ("triton_v1",), False),
        (("softmax",), ("triton_v[12]",), True),
    ],
)
def test_selection(
    tmp_path: Path, ops: tuple[str, ...], impls: tuple[str, ...], admitted: bool
) -> None:
    pair = Pair("softmax", "v2", tmp_path / "softmax_torch.py", tmp_path / "softmax_triton_v2.py")
    assert Selection(ops, impls).admits(pair) is admitted


# What the files hold


@pytest.mark.parametrize(
    ("source", "line"),
    [
        pytest.param(b"class ModelNew: pass\n", 1, id="first line"),
        pytest.param(b"\n\n@dataclass\nclass ModelNew:\n    x = 1\n", 4, id="decorated"),
        pytest.param(b"class ModelNew: pass\nclass ModelNew: pass\n", 2, id="the last counts"),
        pytest.param(
            b"class ModelNew: pass\ndef f():\n    class ModelNew: pass\n", 1, id="in a function"
        ),
        pytest.param(b"class Other:\n    class ModelNew: pass\n", None, id="in another class only"),
        pytest.param(
            b"try:\n    import x\nexcept ImportError:\n    class ModelNew: pass\n", 4, id="guarded"
        ),
        pytest.param(b"\xef\xbb\xbfimport x\nclass ModelNew: pass\n", 2, id="BOM"),
        pytest.param(b"import x\r\n\r\nclass ModelNew:\r\n    pass\r\n", 3, id="CRLF"),
        pytest.param(b"import x\rclass ModelNew: pass\r", 2, id="CR"),
        pytest.param(
            b"# -*- coding: gbk -*-\n# \xcb\xe3\nclass ModelNew: pass\n", 3, id="other encoding"
        ),
        pytest.param(b'p = "\\d"\nclass ModelNew: pass\n', 2, id="invalid escape"),
        pytest.param(b"ModelNew = Other\n", None, id="an alias"),
        pytest.param(b"class Model: pass\n", None, id="another name"),
        pytest.param(b"class ModelNew: pass\ndef (\n", None, id="syntax error"),
        pytest.param(b"class ModelNew: pass\n\0", None, id="null byte"),
        pytest.param(b"\xff\xfeclass ModelNew: pass\n", None, id="no UTF-8"),
        pytest.param(b"x = " + b"(" * 5000, None, id="too deep"),
        pytest.param(b"", None, id="empty"),
    ],
)
def test_class_line(tmp_path: Path, source: bytes, line: int | None) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(source)
    assert discovery.class_line(path, "ModelNew") == line


def test_class_line_of_no_file(tmp_path: Path) -> None:
    assert discovery.class_line(tmp_path / "x.py", "ModelNew") is None
    assert discovery.class_line(tmp_path, "ModelNew") is None


TASKS = {
    b"class Model(nn.Module):\n": True,
    b"\xef\xbb\xbfclass Model:\r\n": True,
    b"if 1:\n\tclass  Model : pass\n": True,
    b"\xff class = 1\nclass Model: pass\n": True,
    b"class ModelNew: pass\n": False,
    b"# class Model\n": False,
    b"def test(): pass\n": False,
}
IMPLEMENTATIONS = {
    b"import triton\nclass ModelNew(nn.Module):\n": True,
    b"class ModelNewest: pass\n": False,
    b"class Model: pass\n": False,
}


@pytest.mark.parametrize(
    ("task", "implementation"), list(itertools.product(TASKS, IMPLEMENTATIONS))
)
def test_is_real_pair(tmp_path: Path, task: bytes, implementation: bytes) -> None:
    (tmp_path / "a_torch.py").write_bytes(task)
    (tmp_path / "a_triton_b.py").write_bytes(implementation)
    pair = discovery.pair_of(tmp_path / "a_triton_b.py")
    assert pair is not None
    assert discovery.is_real_pair(pair) is (TASKS[task] and IMPLEMENTATIONS[implementation])


def test_a_pair_that_is_gone_is_none(tmp_path: Path) -> None:
    pair = Pair("a", "b", tmp_path / "a_torch.py", tmp_path / "a_triton_b.py")
    assert not discovery.is_real_pair(pair)
