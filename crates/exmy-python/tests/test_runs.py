"""Frames of runs, from files as docs/records.md describes them."""

import json
import math

import numpy as np
import pytest

pytest.importorskip("pandas")

import exmy

HASH = "0123456789abcdef"
RESULT = {"version": 3, "recipe": "mxfp4", "seed": 1, "lr": 0.001, "steps": 2, "val_loss": 4.75, "diverged_at": None}
METRICS = [
    {"step": 0, "tokens": 0, "val_loss": 5.5},
    {"step": 1, "tokens": 512, "loss": 5.25, "lr": 0.001, "clipped": True, "events": [{"event": "at", "rule": 1}]},
    {"step": 2, "tokens": 1024, "loss": 5.0, "val_loss": 4.75, "lr": 0.0005, "clipped": False},
]
PROBES = [
    {"step": 0, "probe": "gamma", "value": 1.0, "parts": {"norm.mean": 1.0}},
    {"step": 2, "probe": "gamma", "value": 0.5, "parts": {"norm.mean": 0.5, "norm.list": [1, 2]}},
    {"step": 2, "probe": "norms", "parts": {"lm_head.weight": 8.0}},
]


def lines(objects):
    return "".join(json.dumps(one) + "\n" for one in objects)


@pytest.fixture
def folder(tmp_path):
    for seed in (1, 2):
        run = tmp_path / f"mxfp4-s{seed}-{HASH}"
        run.mkdir()
        (run / "config.toml").write_text("version = 3\n")
        (run / "metrics.jsonl").write_text(lines(METRICS) + '{"step": 3, "los')
        (run / "probes.jsonl").write_text(lines(PROBES))
    (tmp_path / f"mxfp4-s1-{HASH}" / "summary.json").write_text(json.dumps(RESULT))
    names = [{"folder": f"mxfp4-s{seed}-{HASH}", "values": ["mxfp4", str(seed)]} for seed in (2, 1)]
    (tmp_path / "manifest.json").write_text(json.dumps({"version": 1, "keys": ["recipe", "seed"], "runs": names}))
    return tmp_path


def test_runs_are_rows(folder):
    runs = exmy.read_runs(folder)
    assert list(runs.index) == [f"mxfp4-s2-{HASH}", f"mxfp4-s1-{HASH}"]
    assert list(runs.complete) == [False, True] and math.isnan(runs.val_loss.iloc[0])
    assert runs.val_loss.iloc[1] == 4.75 and runs.recipe.iloc[1] == "mxfp4"
    (folder / "manifest.json").unlink()
    assert sorted(exmy.read_runs(folder).index) == sorted(runs.index)
    assert list(exmy.read_runs(runs.path.iloc[1]).index) == [f"mxfp4-s1-{HASH}"]


@pytest.mark.parametrize("last", [2, 2**63 + 1, 2**64 - 1])
def test_seeds_are_whole_numbers(folder, last):
    """Also beside a run without a result, and where binary64 has not all of them."""
    run = folder / f"mxfp4-s1-{HASH}"
    (run / "summary.json").write_text(json.dumps(RESULT | {"seed": last, "tokens": last}))
    manifest = json.loads((folder / "manifest.json").read_text())
    for manifest_too in (True, False):
        runs = exmy.read_runs(folder)
        assert int(runs.seed[run.name]) == int(runs.tokens[run.name]) == last
        assert all(isinstance(seed, (int, np.integer)) for seed in runs.seed.dropna())
        if manifest_too:
            # The other run's seed is that of the grid.
            assert list(runs.seed) == [2, last] and runs.tokens.isna().tolist() == [True, False]
            (folder / "manifest.json").unlink()
    assert str(runs.seed.dtype) == "UInt64"
    values = [{**one, "values": ["mxfp4", text]} for one, text in zip(manifest["runs"], ["0.5", "1e-3"])]
    manifest |= {"keys": ["recipe", "model.init"], "runs": values}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert exmy.read_runs(folder)["model.init"].tolist() == [0.5, 0.001]


def test_metrics_are_by_step(folder):
    metrics = exmy.read_metrics(folder / "mxfp4-s1")
    assert list(metrics.index) == [0, 1, 2] and metrics.loss[2] == 5.0 and math.isnan(metrics.loss[0])
    # What a step did not measure is not chosen by it.
    assert list(metrics[metrics.clipped].index) == [1]
    assert metrics.events[1] == [{"event": "at", "rule": 1}]
    assert list(exmy.read_metrics(folder / f"mxfp4-s1-{HASH}", every=2).index) == [0, 2]


def test_probes_are_by_step(folder):
    probes = exmy.read_probes(folder / "mxfp4-s1")
    assert list(probes.columns) == ["gamma", "norms"] and probes.gamma[2] == 0.5
    gamma = exmy.read_probes(folder / "mxfp4-s1", "gamma")
    assert gamma["norm.mean"].to_dict() == {0: 1.0, 2: 0.5} and gamma["norm.list"][2] == [1, 2]
    assert exmy.read_probes(folder / "mxfp4-s1", "norms")["lm_head.weight"].to_dict() == {2: 8.0}


def test_what_is_missing_is_said(folder):
    run = folder / f"mxfp4-s1-{HASH}"
    with pytest.raises(FileNotFoundError, match="there are mxfp4-s1"):
        exmy.read_metrics(folder / "mxfp5-s1")
    with pytest.raises(FileNotFoundError, match="read_runs lists"):
        exmy.read_metrics(folder)
    with pytest.raises(ValueError, match="gamma, norms"):
        exmy.read_probes(run, "kurtosis")
    (run / "probes.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match="record.probes"):
        exmy.read_probes(run)
    with pytest.raises(FileNotFoundError, match="has no runs"):
        exmy.read_runs(empty(folder))
    for every, said in (("a", "every is 'a', and a whole number"), (1.5, "every is 1.5"), (None, "every is None")):
        with pytest.raises(TypeError, match=said):
            exmy.read_metrics(run, every=every)
    with pytest.raises(ValueError, match="every is 0; it is at least 1"):
        exmy.read_metrics(run, every=0)
    twin = folder / "mxfp4-s1-fedcba9876543210"
    twin.mkdir()
    with pytest.raises(ValueError, match="several runs"):
        exmy.read_metrics(folder / "mxfp4-s1")


def empty(folder):
    (folder / "empty").mkdir()
    return folder / "empty"


def test_reading_has_bounds(folder, monkeypatch):
    monkeypatch.setattr(exmy._runs, "_LINE", 64)
    with pytest.raises(ValueError, match="line 2: more than"):
        exmy.read_metrics(folder / "mxfp4-s1")
    monkeypatch.setattr(exmy._runs, "_FILE", 64)
    with pytest.raises(ValueError, match="manifest.json has more than"):
        exmy.read_runs(folder)


@pytest.mark.parametrize("line", ["[1]", "{", '{"loss": 1}', "[" * 100000])
def test_broken_lines_are_named(folder, line):
    run = folder / f"mxfp4-s1-{HASH}"
    (run / "metrics.jsonl").write_text(lines(METRICS) + line + "\n")
    with pytest.raises(ValueError, match="line 4"):
        exmy.read_metrics(run)
    (run / "summary.json").write_text(line)
    if line[0] == "[" or line == "{":
        with pytest.raises(ValueError, match="summary.json"):
            exmy.read_runs(folder)
