"""Data sets by name: ``load("tabletop")``, ``load("folder:photos")``, ``load("core50")``.

Belongs here: one data set per file, and code that finds, splits and downloads frames. Does not
belong here: features, and the order of a stream.

A data set is one file with a ``load`` function; its keyword parameters are its options.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from verse.datasets.base import Dataset, DataWarning, Frames, Source, check_dataset, unreadable
from verse.datasets.files import holds_classes
from verse.datasets.splits import validation
from verse.settings import require_numbers
from verse.suggestions import find_similar
from verse.types import BadData, BadSetting

__all__ = [
    "DataWarning",
    "Dataset",
    "Frames",
    "Source",
    "check_dataset",
    "describe",
    "load",
    "names",
    "unreadable",
    "validation",
]

# name → (function, one line for `verse list datasets`); imported when asked for
REGISTRY: dict[str, tuple[str, str]] = {
    "tabletop": (
        "verse.datasets.tabletop.load",
        "rendered objects on a table, filmed in sessions; nothing to download",
    ),
    "folder": (
        "verse.datasets.folder.load",
        "your own images, folder:PATH with class/video/frame, class/frame or class/film",
    ),
    "joined": (
        "verse.datasets.joined.load",
        "several folders in one stream: --data parts='A last:3 + B last:1'",
    ),
    "icub1": (
        "verse.datasets.icub1.load",
        "iCubWorld 1.0: 10 categories shown to a robot, 6,002 training images",
    ),
    "icub28": (
        "verse.datasets.icub28.load",
        "iCubWorld28: 7 categories of 4 objects on 4 days, 20,363 training images",
    ),
    "core50": (
        "verse.datasets.core50.load",
        "CoRe50 at full rate: 10 categories, 11 sessions, 119,894 training images",
    ),
    "core50-1fps": (
        "verse.datasets.core50.load_1fps",
        "CoRe50 at one frame a second; --data rate=official: the authors' 2,249 test frames",
    ),
    "imagenet100": (
        "verse.datasets.imagenet100.load",
        "100 classes of ImageNet-1K, pinned by a list, 127,778 training images",
    ),
}


def names() -> tuple[str, ...]:
    """The names ``load`` knows."""
    return tuple(REGISTRY)


def describe() -> dict[str, str]:
    """Name → one line."""
    return {name: line for name, (_, line) in REGISTRY.items()}


def load(
    spec: str,
    root: str | Path | None = None,
    holdout: str | None = None,
    every: int = 1,
    *,
    keep: int | None = None,
    validate: str | None = None,
    options: Mapping[str, object] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """The data set called ``spec``: a name, ``folder:PATH``, or a dotted path to your own loader.

    ``root`` is where its files are (a folder is also searched for in ``VERSE_DATA``), ``holdout``
    the split rule for those that have none of their own, ``every`` or ``keep`` thin the videos,
    ``validate`` replaces test by validation videos taken out of training (a split rule),
    ``options`` are the loader's own keyword parameters; ``progress`` gets (done, total) from
    loaders that render or download.
    """
    name, colon, path = spec.partition(":")
    loader = _find(name)
    given = dict(options or {})
    if colon:
        given["path"] = str(_folder(path, root))
    elif root is not None:
        given["root"] = root
    if holdout is not None:
        given["holdout"] = holdout
    _fits(name, loader, given)
    if name == "folder" and root is None:
        _there(path, Path(str(given["path"])))
    if progress is not None and "progress" in inspect.signature(loader).parameters:
        given["progress"] = progress
    dataset = loader(**given).thin(every, keep)
    return dataset if validate is None else validation(dataset, validate)


def _folder(path: str, root: str | Path | None) -> Path:
    """Under ``root`` if given; else as it stands, else under the data directory ``VERSE_DATA``.

    So a record that says ``folder:eth80`` names no place of one machine. A folder that holds no
    classes is passed over: it may be the results of runs on this very data set.
    """
    if root is not None:
        return Path(root) / path
    shared = os.environ.get("VERSE_DATA")
    if shared and not holds_classes(Path(path)) and (Path(shared) / path).is_dir():
        return Path(shared) / path
    return Path(path)


def _there(path: str, found: Path) -> None:
    """Refuse a folder that is nowhere; say where it was looked for, and what to do."""
    if found.expanduser().exists():
        return
    shared = os.environ.get("VERSE_DATA")
    also = f", nor in {shared} (VERSE_DATA)" if shared else ""
    raise BadData(
        f"there is no folder {path or found}{also}: write folder:PATH with a folder that holds one "
        "folder per class" + ("" if shared else ", or set VERSE_DATA to where it lies")
    )


def _find(name: str) -> Callable[..., Dataset]:
    if name in REGISTRY:
        dotted = REGISTRY[name][0]
    elif "." in name:
        dotted = name
    else:
        near = find_similar(name, names())
        if not near and Path(name).is_dir():
            near = f"folder:{name}"
        raise BadSetting(
            f"there is no data set {name!r}"
            + (f", did you mean {near!r}?" if near else ".")
            + f" There are: {', '.join(names())}; for your own images folder:PATH"
        )
    module, _, function = dotted.rpartition(".")
    try:
        loader: Callable[..., Dataset] = getattr(importlib.import_module(module), function)
    except (ModuleNotFoundError, AttributeError) as error:
        raise BadSetting(f"the data set {name!r} cannot be imported: {error}") from None
    return loader


def _fits(name: str, loader: Callable[..., Dataset], given: Mapping[str, object]) -> None:
    """Refuse options the loader does not have, and name those it has; refuse wrong types."""
    signature = inspect.signature(loader)
    valid = [p for p in signature.parameters if p != "expect"]
    for key in given:
        if key not in signature.parameters:
            if key == "holdout":
                raise BadSetting(f"{name} has a split of its own and takes no holdout rule")
            if key == "path":
                raise BadSetting(f"{name!r} takes no path after a colon; give its place as root")
            raise BadSetting(f"{name} has no option {key!r}; it has: {', '.join(valid) or 'none'}")
    needed = [key for key, p in signature.parameters.items() if p.default is p.empty]
    if missing := [key for key in needed if key not in given]:
        hint = "write folder:PATH" if missing == ["path"] else f"give {', '.join(missing)}"
        raise BadSetting(f"{name} needs to know where your data is: {hint}")
    require_numbers(loader, given)
