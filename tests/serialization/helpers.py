"""What the tests of keeping share."""

import hashlib
import io
import json
import re

import wengert as wg
from wengert._engine.core.graph_fingerprint import equals
from wengert._engine.core.node_properties import NodeInfo


def packed(what, **options):
    """The bytes of a file."""
    file = io.BytesIO()
    wg.save(what, file, **options)
    return file.getvalue()


def unpacked(data, **options):
    return wg.load(io.BytesIO(data), **options)


def round_trip(what, **options):
    """What comes back, which gives the same bytes when it is saved again."""
    data = packed(what)
    again = unpacked(data, **options)
    assert packed(again) == data
    return again


def named_in_order(text):
    """A text in which lengths that loops name (steps.N, anew for each graph) have other names."""
    names = {}
    text = re.sub(r" +", " ", text)  # which are of other widths
    return re.sub(r"steps\.\w+", lambda m: names.setdefault(m[0], f"steps {len(names)}"), text)


def same_graph(a, b):
    """Whether two graphs read the same, and are the same in what print does not show."""
    assert named_in_order(str(a)) == named_in_order(str(b))
    specs = [named_in_order(str([n.spec for n in g.nodes])) for g in (a, b)]
    assert specs[0] == specs[1]
    # Variables are equal to themselves only, and so are effects.
    # The rule of a function comes back as a list, which compares by identity.
    ruled = any(n.op.kind == "call" for n in a.nodes if n.args)
    assert a.variables or a.effects or ruled or equals(a, b)
    assert a.structure == b.structure and a.name == b.name
    assert a.requirements == b.requirements
    for x, y in zip(a.nodes, b.nodes, strict=True):
        assert (type(x), x.op, x.level, x.scope, x.name, x.kind) == (
            (type(y), y.op, y.level, y.scope, y.name, y.kind)
        )
        a, b = (n.info or NodeInfo() for n in (x, y))
        assert (a.metadata, a.held) == (b.metadata, b.held)
        # What could not be checked while reading is checked when it runs.
        assert b.unchecked or a.probed == b.probed
    return True


def parts(data):
    """Header and data of a file."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header, data, signed=True):
    """A file of a header and data, with the right sum: what only a hostile writer makes."""
    metadata = header.setdefault("__metadata__", {})
    if signed:
        metadata.pop("sha256", None)
        text = json.dumps(header, separators=(",", ":"))
        metadata["sha256"] = hashlib.sha256(text.encode() + data).hexdigest()
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + data


def changed(data, change):
    """A file whose object has been changed by somebody who knows the format."""
    header, rest = parts(data)
    made = json.loads(header["__metadata__"]["object"])
    replaced = change(made)
    made = made if replaced is None else replaced
    header["__metadata__"]["object"] = json.dumps(made, separators=(",", ":"))
    return joined(header, rest)
