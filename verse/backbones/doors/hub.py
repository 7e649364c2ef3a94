"""Files of the Hugging Face hub: safetensors and JSON only, each with the revision it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verse.backbones.doors.libraries import import_library
from verse.types import BadSetting

FILES = (
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*-of-*.safetensors",
)


class Missing(BadSetting):
    """The hub did not give a file: no connection, no such model, or not allowed."""


def fetch_file(repository: str, file: str, revision: str) -> tuple[Path, str]:
    """(a file's place in the hub's own cache, the commit it is of); downloaded where needed."""
    hub = import_library("huggingface_hub")
    place = _call(hub.hf_hub_download, repository, file, revision=revision or None)
    return place, place.parent.name


def fetch_model(repository: str, revision: str) -> tuple[Path, str]:
    """(a folder with a model's files, the commit they are of); downloaded where needed."""
    hub = import_library("huggingface_hub")
    place = _call(
        hub.snapshot_download, repository, revision=revision or None, allow_patterns=list(FILES)
    )
    return place, place.name


def _call(fetch: Any, *args: Any, **options: Any) -> Path:
    try:
        return Path(fetch(*args, **options))
    except Exception as error:  # the hub's library has a kind of error for each way to fail
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise Missing(f"{type(error).__name__}: {reason}") from error
