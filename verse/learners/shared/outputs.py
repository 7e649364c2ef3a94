"""Which output of the network answers for which label."""

from __future__ import annotations

import torch
from torch import Tensor

from verse.stateful import Stateful


class Outputs(Stateful):
    """Labels in the order of their outputs; a class that leaves makes room for those behind it.

    >>> outputs = Outputs()
    >>> outputs.add(7), outputs.add(5), outputs.add(9)
    (0, 1, 2)
    >>> outputs.drop(5)
    1
    >>> outputs.labels, outputs.of[9]
    ([7, 9], 1)
    """

    def __init__(self) -> None:
        self.labels: list[int] = []  # output → label
        self.of: dict[int, int] = {}  # label → output

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, label: int) -> int:
        """The output of a new label."""
        self.of[label] = len(self.labels)
        self.labels.append(label)
        return self.of[label]

    def drop(self, label: int) -> int:
        """The output that a label had; later ones move up."""
        output = self.of[label]
        self._set([other for other in self.labels if other != label])
        return output

    def renumber(self) -> None:
        """Labels become the numbers of their outputs."""
        self._set(list(range(len(self.labels))))

    def _set(self, labels: list[int]) -> None:
        self.labels, self.of = labels, {label: o for o, label in enumerate(labels)}

    def mark(self) -> int:
        return len(self.labels)

    def undo(self, mark: int) -> None:
        for label in self.labels[mark:]:
            del self.of[label]
        del self.labels[mark:]

    def state(self) -> dict[str, Tensor]:
        return {"": torch.tensor(self.labels, dtype=torch.int64)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._set([int(label) for label in state[""]])
        if len(self.of) < len(self.labels):
            raise ValueError("a label has two outputs")

    def follow(self, other: Outputs) -> None:
        self._set(list(other.labels))


def without_row(values: Tensor, output: int) -> Tensor:
    """A value per output, without that of one."""
    return torch.cat((values[:output], values[output + 1 :]))
