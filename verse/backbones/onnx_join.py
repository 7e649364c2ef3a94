"""Several ONNX models as one: each takes what the one before it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verse.backbones import onnx_wire as wire
from verse.backbones.onnx_read import Field, read_fields, write_fields
from verse.types import BadState

OLDEST = 11
"""Operator sets below it write some of our operators differently."""

_NODE, _INITIALIZER, _INPUT, _OUTPUT, _SPARSE = 1, 5, 11, 12, 15  # of a graph


def join_models(
    models: Sequence[bytes],
    *,
    input_name: str = "input",
    output_name: str | Sequence[str] = "output",
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """One model that runs the given ones in turn; each has one input and one output.

    The last one may have several: they keep their order and get the names ``output_name``.

    >>> from torch import nn, zeros
    >>> from verse.backbones.onnx_graph import convert_module
    >>> layers = (nn.ReLU(), nn.ReLU6())
    >>> parts = [convert_module(nn.Sequential(layer), zeros(1, 3)) for layer in layers]
    >>> len(join_models(parts)) > 100
    True
    """
    nodes: list[Field] = []
    rest: list[Field] = []
    kept: list[Field] = []
    versions, sets, functions = [0], dict[bytes, int](), list[Field]()
    last = input_name
    first_value = b""
    results: list[bytes] = []
    output_names = [output_name] if isinstance(output_name, str) else list(output_name)
    for i, model in enumerate(models):
        fields = read_fields(model)
        versions += [value for number, value in fields if number == 1 and isinstance(value, int)]
        for number, value in fields:
            if number == 8 and isinstance(value, bytes):
                domain, version = _operator_set(value)
                sets[domain] = max(sets.get(domain, 0), version)
            elif number == 25:
                functions.append((number, value))
        graph = _rename_graph(read_fields(graph_of(fields)), f"{i}.")
        entry = one_input(graph)
        results = _outputs(graph, len(output_names) if i == len(models) - 1 else 1)
        nodes.append((_NODE, wire.node("Identity", [last], _name(entry))))
        nodes += [field for field in graph if field[0] == _NODE]
        rest += [field for field in graph if field[0] in (_INITIALIZER, _SPARSE)]
        first_value = first_value or entry
        last = _name(results[0])
    if sets.get(b"", OLDEST) < OLDEST:
        raise BadState(f"it uses operator set {sets[b'']}: convert it to {OLDEST} or newer first")
    named = list(zip(results, output_names, strict=True))
    nodes += [(_NODE, wire.node("Identity", [_name(r)], name)) for r, name in named]
    kept = [*nodes, (2, b"verse"), *rest, (_INPUT, _set_name(first_value, input_name))]
    kept += [(_OUTPUT, _set_name(result, name)) for result, name in named]
    result_fields: list[Field] = [(1, max(versions)), (2, b"verse"), (7, write_fields(kept))]
    for domain, version in sets.items():
        result_fields.append((8, write_fields([(1, domain), (2, version)])))
    for key, text in (metadata or {}).items():
        result_fields.append((14, write_fields([(1, key.encode()), (2, text.encode())])))
    return write_fields(result_fields + functions)


def graph_of(fields: Sequence[Field]) -> bytes:
    """The graph of a model's fields."""
    for number, value in fields:
        if number == 7 and isinstance(value, bytes):
            return value
    raise BadState("this is not an ONNX model: it has no graph")


def one_input(graph: Sequence[Field]) -> bytes:
    """The one input that is no constant."""
    messages = [v for n, v in graph if n == _INITIALIZER and isinstance(v, bytes)]
    constants = {dict(read_fields(message)).get(8) for message in messages}
    inputs = [v for n, v in graph if n == _INPUT and isinstance(v, bytes)]
    free = [v for v in inputs if dict(read_fields(v)).get(1) not in constants]
    if len(free) != 1:
        raise BadState(f"it has {len(free)} inputs: a backbone takes one, the image")
    return free[0]


def _outputs(graph: Sequence[Field], count: int) -> list[bytes]:
    outputs = [v for n, v in graph if n == _OUTPUT and isinstance(v, bytes)]
    if len(outputs) != count:
        wanted = "name one" if count == 1 else f"{count} are needed"
        raise BadState(f"it has {len(outputs)} outputs: {wanted}")
    return outputs


def keep_output(model: bytes, name: str) -> bytes:
    """The same model with the output of that name alone."""
    fields = read_fields(model)
    graph = read_fields(graph_of(fields))
    fewer = [f for f in graph if f[0] != _OUTPUT or _name(f[1]) == name]
    return write_fields([(7, write_fields(fewer)) if f[0] == 7 else f for f in fields])


def _name(value: int | bytes) -> str:
    """The name of an input or output."""
    found = dict(read_fields(value)).get(1) if isinstance(value, bytes) else None
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else ""


def _set_name(value: bytes, name: str) -> bytes:
    return write_fields([(1, name.encode()) if f[0] == 1 else f for f in read_fields(value)])


def _operator_set(value: bytes) -> tuple[bytes, int]:
    facts = dict(read_fields(value))
    domain, version = facts.get(1, b""), facts.get(2, 0)
    if not isinstance(domain, bytes) or not isinstance(version, int):
        raise BadState("its operator sets are damaged")
    return b"" if domain == b"ai.onnx" else domain, version


def _rename_graph(graph: list[Field], prefix: str) -> list[Field]:
    """Every value's name with a prefix, also in graphs inside; no two models share one then."""
    before = prefix.encode()
    found: list[Field] = []
    for number, value in graph:
        if not isinstance(value, bytes):
            found.append((number, value))
        elif number == _NODE:
            found.append((number, _rename_node(value, before)))
        elif number == _INITIALIZER:
            found.append((number, _rename(value, 8, before)))
        elif number == _SPARSE:
            inner = [
                (n, _rename(v, 8, before) if n == 1 and isinstance(v, bytes) else v)
                for n, v in read_fields(value)
            ]
            found.append((number, write_fields(inner)))
        elif number in (_INPUT, _OUTPUT):
            found.append((number, _rename(value, 1, before)))
        # shapes of values inside and notes are left out: the runtime infers them
    return found


def _rename(message: bytes, field: int, before: bytes) -> bytes:
    """The text in a field with a prefix; an empty one means "not given" and stays."""
    return write_fields(
        [
            (n, before + v if n == field and isinstance(v, bytes) and v else v)
            for n, v in read_fields(message)
        ]
    )


def _rename_node(node: bytes, before: bytes) -> bytes:
    found: list[Field] = []
    for number, value in read_fields(node):
        if number in (1, 2, 3) and isinstance(value, bytes) and value:
            value = before + value
        elif number == 5 and isinstance(value, bytes):
            value = _rename_attribute(value, before)
        found.append((number, value))
    return write_fields(found)


def _rename_attribute(attribute: bytes, before: bytes) -> bytes:
    return write_fields(
        [
            (
                n,
                write_fields(_rename_graph(read_fields(v), before.decode()))
                if n in (6, 11) and isinstance(v, bytes)
                else v,
            )
            for n, v in read_fields(attribute)
        ]
    )
