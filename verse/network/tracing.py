"""Tracing a module while other threads go on computing.

``torch.fx`` replaces ``nn.Module.__call__`` and ``__getattr__`` for the whole process while it
traces, so that a module called by another thread meanwhile would be taken for a part of the trace.
"""

from __future__ import annotations

import threading
from typing import Any

from torch import fx, nn

_one_at_a_time = threading.Lock()


def trace(tracer: fx.Tracer, module: nn.Module) -> fx.Graph:
    """``tracer.trace(module)``, with calls from other threads passed through.

    >>> [node.op for node in trace(fx.Tracer(), nn.ReLU()).nodes]
    ['placeholder', 'call_function', 'output']
    """
    with _one_at_a_time:
        mine = threading.get_ident()
        call_module, get = tracer.call_module, tracer.getattr

        def call_or_pass(m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
            if threading.get_ident() != mine:
                return forward(*args, **kwargs)
            return call_module(m, forward, args, kwargs)

        def get_or_pass(attr: str, value: Any, cache: Any) -> Any:
            return get(attr, value, cache) if threading.get_ident() == mine else value

        tracer.call_module = call_or_pass  # type: ignore[method-assign]
        tracer.getattr = get_or_pass  # type: ignore[assignment, method-assign]
        return tracer.trace(module)
