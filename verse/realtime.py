"""A stream that does not wait: which frames a busy learner misses at a given frame rate."""

from __future__ import annotations

from collections import deque

from verse.types import BadSetting


class Camera:
    """Frame i arrives at i / fps seconds. A frame that finds the learner busy passes by unlearned,
    unless one of ``queue`` places is free.

    Time is counted, not waited for: the learner says what a step cost (measured, or a given number
    for results that repeat exactly). Answers do not take the learner's time: they come from the
    last published weights.

    Parameters
    ----------
    fps
        Frames per second.
    queue
        Frames that may wait.

    >>> camera = Camera(fps=10)
    >>> [camera.offer(i) and camera.record(0.15) for i in range(4)]
    [True, False, True, False]
    """

    def __init__(self, fps: float, queue: int = 0) -> None:
        if not 0 < fps < float("inf"):
            raise BadSetting(f"fps is a number above 0, not {fps}")
        if queue < 0:
            raise BadSetting(f"a queue has 0 or more places, not {queue}")
        self.fps, self.queue = fps, queue
        self._ends: deque[float] = deque()  # when each frame taken but not finished will be done
        self._arrival = 0.0

    def offer(self, i: int) -> bool:
        """Whether frame ``i`` is taken."""
        self._arrival = i / self.fps
        while self._ends and self._ends[0] <= self._arrival:
            self._ends.popleft()
        return len(self._ends) <= self.queue

    def record(self, seconds: float) -> bool:
        """Record how many seconds the last frame took."""
        start = max(self._arrival, self._ends[-1] if self._ends else 0.0)
        self._ends.append(start + seconds)
        return True

    def state(self) -> list[float]:
        """When the frames not finished yet will be done."""
        return list(self._ends)

    def load_state(self, state: list[float]) -> None:
        """Go on from a saved moment."""
        self._ends = deque(state)
