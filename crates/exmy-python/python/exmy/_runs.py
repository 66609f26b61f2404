"""What `exmy train`, `sweep` and `study` recorded, as frames of pandas; docs/records.md describes the files.

Files are read line by line up to stated sizes. A line that a run at work has only begun to write is left out. Digests
are not compared; `exmy ls` does that.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import _whole

if TYPE_CHECKING:
    import pandas

# A summary or a manifest has at most so many bytes, a line of records so many.
_FILE, _LINE = 1 << 28, 1 << 26


def _pandas():
    try:
        import pandas
    except ImportError as error:
        raise ImportError("runs are read as frames of pandas, which is not there: pip install pandas") from error
    return pandas


def _json(text: bytes, what: str):
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{what} is no JSON object")
    return found


def _object(path: Path) -> dict | None:
    """The object that a small file holds; None if there is no file."""
    try:
        with open(path, "rb") as file:
            text = file.read(_FILE + 1)
    except FileNotFoundError:
        return None
    if len(text) > _FILE:
        raise ValueError(f"{path} has more than {_FILE >> 20} MiB, which no run writes")
    return _json(text, str(path))


def _run(run) -> Path:
    """The folder of a run, which may be named without the hash behind it."""
    path = Path(os.fspath(run))
    if path.is_dir():
        return path
    near = sorted(path.parent.glob("*")) if path.parent.is_dir() else []
    found = [one for one in near if re.fullmatch(re.escape(path.name) + "-[0-9a-f]{16}", one.name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"several runs are called {path}: {', '.join(one.name for one in found[:4])}")
    runs = [one.name for one in near if (one / "config.toml").is_file()]
    there = f"; there are {', '.join(runs[:4])}" if runs else ""
    raise FileNotFoundError(f"there is no run {path}{there}")


def _lines(run, name: str, every: int):
    """The objects of a file of records; of a file of steps those that `every` divides."""
    every = _whole(every, "every", 1)
    path = _run(run) / name
    if not path.is_file():
        if not (path.parent / "config.toml").is_file():
            raise FileNotFoundError(f"{path.parent} is no run, without config.toml; read_runs lists those of a folder")
        why = "no probe was named in record.probes" if name == "probes.jsonl" else "the run has not begun"
        raise FileNotFoundError(f"there is no {path}: {why}")
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(_LINE + 1):
            number += 1
            if len(line) > _LINE:
                raise ValueError(f"{path}, line {number}: more than {_LINE >> 20} MiB, which no run writes")
            if not line.endswith(b"\n"):
                return
            found = _json(line, f"{path}, line {number}")
            if not isinstance(found.get("step"), int):
                raise ValueError(f"{path}, line {number}: there is no step")
            if found["step"] % every == 0:
                yield found


def _frame(rows: list[dict], index: str):
    pandas = _pandas()
    names = list(dict.fromkeys(key for row in rows for key in row)) or [index]
    columns = {name: _column([row.get(name) for row in rows], pandas) for name in names}
    return pandas.DataFrame(columns).set_index(index)


def _column(values: list, pandas):
    """A column. Where some are missing, pandas would make whole numbers floats, which have not all seeds."""
    there = [value for value in values if value is not None]
    kinds = {type(value) for value in there}
    if len(there) == len(values) or kinds not in ({int}, {bool}):
        return values
    if kinds == {bool}:
        return pandas.array(values, dtype="boolean")
    kind = "UInt64" if min(there) >= 0 else "Int64"
    try:
        whole = np.array([0 if value is None else value for value in values], kind.lower())
    except OverflowError:
        return pandas.Series(values, dtype=object)
    found = pandas.array(whole, dtype=kind)
    found[[value is None for value in values]] = pandas.NA
    return found


def _parsed(texts: list[str]) -> list:
    """The numbers that texts of a grid say, if all say one; else the texts."""
    for kind, pattern in ((int, r"-?[0-9]+"), (float, r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")):
        if all(isinstance(text, str) and re.fullmatch(pattern, text) for text in texts):
            return [kind(text) for text in texts]
    return texts


def _folders(folder: Path) -> tuple[list[str], list[tuple[Path, list]]]:
    """In what runs differ, and the folders of the runs with their values of that."""
    manifest = _object(folder / "manifest.json")
    if manifest is not None and isinstance(manifest.get("runs"), list):
        runs = []
        for one in manifest["runs"]:
            if not isinstance(one, dict) or not isinstance(one.get("folder"), str):
                raise ValueError(f"{folder / 'manifest.json'} lists a run without a folder")
            runs.append((folder / one["folder"], one.get("values") or []))
        return [str(key) for key in manifest.get("keys") or []], runs
    if (folder / "config.toml").is_file():
        return [], [(folder, [])]
    inside = [one for base in (folder, folder / "runs") if base.is_dir() for one in sorted(base.iterdir())]
    return [], [(one, []) for one in inside if (one / "config.toml").is_file()]


def read_runs(folder) -> pandas.DataFrame:
    """The runs of a folder of `exmy train`, `sweep` or `study`, one a row, by the names of their folders.

    Columns are what `summary.json` says: `recipe`, `seed`, `lr`, `steps`, `tokens`, `parameters`, `train_loss`,
    `val_loss`, `diverged_at`, `reason`, `precision` (lists of shares), and the keys of a sweep's grid. Losses are in
    nats per token. `complete` says whether there is a result; the other columns of a run without one are missing, but
    for those of the grid. Whole numbers stay whole: a column where one is missing has pandas' type `UInt64`.
    `path` is what `read_metrics` and `read_probes` take.
    """
    folder = Path(os.fspath(folder))
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    keys, runs = _folders(folder)
    if not runs:
        raise FileNotFoundError(f"{folder} has no runs: neither manifest.json nor a folder with config.toml")
    grid = [dict(zip(keys, values)) for _, values in runs]
    for key in keys:
        having = [one for one in grid if key in one]
        for one, value in zip(having, _parsed([one[key] for one in having])):
            one[key] = value
    rows = []
    for (path, _), values in zip(runs, grid):
        summary = _object(path / "summary.json")
        row = {"run": path.name, **values, "complete": summary is not None}
        row |= {key: value for key, value in (summary or {}).items() if key not in ("version", "records")}
        rows.append(row | {"path": str(path)})
    return _frame(rows, "run")


def read_metrics(run, *, every: int = 1) -> pandas.DataFrame:
    """The lines of a run's `metrics.jsonl` by step: `tokens`, `loss`, `val_loss`, `lr`, `grad_norm`, `clipped`, ...

    `run` is a run's folder; the hash at its end may be left out. `every=10` keeps the steps that 10 divides. What a
    step did not measure is missing.
    """
    return _frame(list(_lines(run, "metrics.jsonl", every)), "step")


def read_probes(run, probe: str | None = None, *, every: int = 1) -> pandas.DataFrame:
    """The values of a run's probes by step, a column each; of one `probe` its value and its parts.

    Parts have columns of their names, such as `layers.0.entropy`; some are lists.
    """
    rows, names = {}, {}
    for line in _lines(run, "probes.jsonl", every):
        name, row = line.get("probe"), rows.setdefault(line["step"], {"step": line["step"]})
        names[name] = None
        if probe is None:
            row[name] = line.get("value")
        elif name == probe:
            row |= ({"value": line["value"]} if "value" in line else {}) | (line.get("parts") or {})
    if probe is not None and probe not in names:
        raise ValueError(f"{run} has no probe {probe}; there are {', '.join(map(str, names)) or 'none'}")
    return _frame([row for row in rows.values() if probe is None or len(row) > 1], "step")
