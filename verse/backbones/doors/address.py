"""Names of backbones from outside: ``kind:target@revision?option=value&…``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from verse.types import BadSetting


@dataclass(frozen=True)
class Address:
    """Where a backbone comes from.

    Parameters
    ----------
    kind
        "timm", "hf" or "onnx".
    target
        The model's name, a folder or a file.
    revision
        A commit, tag or branch of the model's repository; "" for the newest.
    options
        What the file itself does not say.

    >>> Address.parse("hf:facebook/dinov2-small@4a1b")
    Address(kind='hf', target='facebook/dinov2-small', revision='4a1b', options={})
    >>> Address.parse("onnx:my.onnx?size=224").options
    {'size': '224'}
    """

    kind: str
    target: str
    revision: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, name: str) -> Address:
        """Read a name; a file's name may contain "@", a model's not."""
        kind, _, rest = name.partition(":")
        options: dict[str, str] = {}
        head, mark, tail = rest.rpartition("?")
        if mark and "=" in tail:
            rest = head
            for pair in tail.split("&"):
                key, equals, value = pair.partition("=")
                if not (key and equals and value):
                    raise BadSetting(f"{name}: options look like ?size=224&mean=0.5,0.5,0.5")
                options[key] = value
        target, revision = rest, ""
        if kind != "onnx":
            target, _, revision = rest.partition("@")
        if not target:
            raise BadSetting(f"{name!r} names no model: see verse list backbones")
        return cls(kind, target, revision, options)

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        options = "&".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.kind}:{self.target}{revision}" + (f"?{options}" if options else "")
