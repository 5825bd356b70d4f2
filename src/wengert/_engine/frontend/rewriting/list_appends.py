"""Find lists that loops fill; replace their last elements, ``out[-1]``, by variables.

    Appends                        the statements that append to such lists, and the lists of each
                                   loop and branch
    appends_in                     those of a function
    append_of                      the list and the value of a statement that appends
    last_read                      the list and the position of ``out[-1]``
    as_append_calls                replace ``out += [value]`` by ``out.append(value)``
    with_last_element_variables    the transformation

    out = []
    for i in range(n):           # this loop fills `out`
        out.append(x[i] ** 2)    # becomes append(out, x[i] ** 2)
    return np.array(out)

Such a loop can be traced once: its iterations append rows of one array.  A list qualifies if it is
created in the function, and if between its creation and the end of the loop, elements are only
appended and the last elements read (``out[-1]``), so that no other name refers to
it.

    out = [y0]                             out = [y0]
    for t in ts:                           _wg_last_1_out = out[-1]
        out.append(step(out[-1], t))       for t in ts:
                                               _wg_last_1_out = step(_wg_last_1_out, t)
                                               out.append(_wg_last_1_out)

The loop carries the variable, and does not read the list any more.  A list that
may have fewer elements when the loop starts is left: Python may raise an IndexError.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wengert._engine.frontend.syntax import children, load, located, traverse

from ..names import captured_in, declared

_BLOCKS = (ast.For, ast.While, ast.If)
_SCOPES = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)
_LAST_ELEMENTS = 8  # elements from the end of a list that a loop may read
_Path = tuple[ast.stmt, ...]


class Appends(NamedTuple):
    """Statements that append to lists that qualify.

    Attributes
    ----------
    statements : frozenset of ast.stmt
    filled : dict
        For each loop and branch, the lists created before it to which it appends.
    lengths : dict
        For each outermost loop, the lists that it fills, with the minimum of their lengths when it
        starts.
    shared : dict
        For each branch, the lists to which it appends that may have another name.
    """

    statements: frozenset[ast.stmt]
    filled: dict[ast.stmt, frozenset[str]]
    lengths: dict[ast.stmt, dict[str, int]]
    shared: dict[ast.stmt, set[str]]


class _Use(NamedTuple):
    """A use of a variable by a statement.

    Attributes
    ----------
    kind : str
        "created" (as a list), "appended", "read", "last" (one of the last elements is read), or
        "bound".
    path : tuple of ast.stmt
        The loops and branches around the statement.
    statement : ast.stmt
    elements : int
        The length of the list, if it is created.
    """

    kind: str
    path: _Path
    statement: ast.stmt
    elements: int = 0


def appends_in(body: Sequence[ast.stmt], parameters: set[str], last_reads: bool = False) -> Appends:
    """The statements of a function that append to lists that qualify, and these lists.

    Parameters
    ----------
    body : sequence of ast.stmt
    parameters : set of str
        The parameters of the function.
    last_reads : bool
        Whether loops may read last elements, which are not replaced yet.
    """
    uses: dict[str, list[_Use]] = {}
    _collect(body, (), uses)
    global_names, nonlocal_names = declared(body)
    excluded = parameters | global_names | nonlocal_names | captured_in(body)
    statements: set[ast.stmt] = set()
    filled: dict[ast.stmt, set[str]] = {}
    lengths: dict[ast.stmt, dict[str, int]] = {}
    shared: dict[ast.stmt, set[str]] = {}
    for name, uses_of_list in uses.items():
        kinds = {e.kind for e in uses_of_list}
        if name in excluded or not {"created", "appended"} <= kinds or "bound" in kinds:
            continue
        blocks = [
            _filling_blocks(k, uses_of_list, last_reads)
            for k, e in enumerate(uses_of_list)
            if e.kind == "appended"
        ]
        if any(b is None for b in blocks):
            continue
        statements |= {e.statement for e in uses_of_list if e.kind == "appended"}
        for block in {b for those in blocks for b in those or ()}:
            filled.setdefault(block, set()).add(name)
        for k, use in enumerate(uses_of_list):
            if use.kind == "appended" and any(e.kind == "read" for e in uses_of_list[:k]):
                for block in use.path:
                    shared.setdefault(block, set()).add(name)
        for path in blocks:
            loop = next((b for b in path or () if not isinstance(b, ast.If)), None)
            if loop is not None:
                lengths.setdefault(loop, {})[name] = _length_before(loop, uses_of_list)
    return Appends(
        frozenset(statements), {b: frozenset(names) for b, names in filled.items()}, lengths, shared
    )


def _length_before(loop: ast.stmt, uses: Sequence[_Use]) -> int:
    """The minimum length of a list at the start of a loop that fills it."""
    length = 0
    creation: _Use | None = None
    for use in uses:
        if loop in use.path or use.statement is loop:
            break
        if use.kind == "created":
            creation, length = use, use.elements
        elif use.kind == "appended" and creation is not None and use.path == creation.path:
            length += 1
    return length


def _filling_blocks(k: int, uses: Sequence[_Use], last_reads: bool) -> _Path | None:
    """The blocks around use `k`, an append, since the list was created; None if not suitable."""
    use = uses[k]
    creation = None
    for other in uses[:k][::-1]:
        if other.kind == "created" and use.path[: len(other.path)] == other.path:
            creation = other
            break
    if creation is None:
        return None
    depth = len(creation.path)
    blocks = use.path[depth:]
    loops = [b for b in blocks if not isinstance(b, ast.If)]
    if loops:
        outermost = blocks.index(loops[0]) + depth
        outermost_path = use.path[: outermost + 1]
        creation_index = uses.index(creation)
        for number, other in enumerate(uses):
            inside = other.path[: outermost + 1] == outermost_path
            between = creation_index < number < k and other.path[:depth] == creation.path
            if other.kind in ("read", "created") and other is not creation and (inside or between):
                return None
            if other.kind == "last" and inside and not last_reads:
                return None
    return blocks


def _collect(body: Sequence[ast.stmt], path: _Path, uses: dict[str, list[_Use]]) -> None:
    for statement in body:
        _collect_statement(statement, path, uses)


def _collect_statement(node: ast.stmt, path: _Path, uses: dict[str, list[_Use]]) -> None:
    def note(name: str, kind: str) -> None:
        uses.setdefault(name, []).append(_Use(kind, path, node))

    append = append_of(node)
    if append is not None:
        for name, kind in _names(append[1]):
            note(name.id, kind)
        note(append[0], "appended")
        return
    if isinstance(node, _BLOCKS):
        head = (
            node.test
            if isinstance(node, ast.If | ast.While)
            else ast.Tuple([node.target, node.iter])
        )
        inner_path = (*path, node)
        for name, kind in _names(head):
            uses.setdefault(name.id, []).append(
                _Use(kind, inner_path if isinstance(node, ast.While) else path, node)
            )
        _collect(node.body, inner_path, uses)
        _collect(node.orelse, inner_path if isinstance(node, ast.If) else path, uses)
        return
    target = _single_target(node)
    value = getattr(node, "value", None)
    if target is not None and isinstance(value, ast.List):
        for name, kind in _names(value):
            note(name.id, kind)
        count = sum(not isinstance(x, ast.Starred) for x in value.elts)
        uses.setdefault(target, []).append(_Use("created", path, node, count))
        return
    nested: list[ast.stmt] = []
    for field, value in ast.iter_fields(node):
        del field
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            if isinstance(part, ast.stmt):
                nested.append(part)
            elif isinstance(part, ast.ExceptHandler | ast.match_case):
                nested += part.body
                for name, kind in _names(part, statements=False):
                    note(name.id, kind)
            elif isinstance(part, ast.AST):
                for name, kind in _names(part):
                    note(name.id, kind)
    _collect(nested, path, uses)


def _names(node: ast.AST, statements: bool = True) -> list[tuple[ast.Name, str]]:
    """The variables in an expression or statement, and how each is used."""
    last = last_read(node)
    if last is not None:
        return [(last[0], "last")]
    if isinstance(node, ast.Name):
        return [(node, "read" if isinstance(node.ctx, ast.Load) else "bound")]
    if isinstance(node, _SCOPES):
        inner_names = [n for n in traverse(node) if isinstance(n, ast.Name)]
        return [(n, "read" if isinstance(n.ctx, ast.Load) else "bound") for n in inner_names]
    names: list[tuple[ast.Name, str]] = []
    for child in children(node):
        if statements or not isinstance(child, ast.stmt):
            names += _names(child, statements)
    return names


def last_read(node: ast.AST) -> tuple[ast.Name, int] | None:
    """The list, and 1 for ``out[-1]``, 2 for ``out[-2]`` ...; None for other expressions."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None
    index = node.slice
    if not isinstance(index, ast.UnaryOp) or not isinstance(index.op, ast.USub):
        return None
    number = getattr(index.operand, "value", None)
    if type(number) is not int or not 0 < number <= _LAST_ELEMENTS:
        return None
    return (node.value, number) if isinstance(node.value, ast.Name) else None


def _single_target(node: ast.stmt) -> str | None:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    if len(targets) == 1 and isinstance(targets[0], ast.Name):
        return targets[0].id
    return None


def append_of(node: ast.stmt) -> tuple[str, ast.expr] | None:
    """The list and the value of ``out.append(value)`` or ``out += [value]``; None otherwise."""
    if isinstance(node, ast.AugAssign):
        if isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            items = node.value.elts if isinstance(node.value, ast.List) else []
            if len(items) == 1 and not isinstance(items[0], ast.Starred):
                return node.target.id, items[0]
        return None
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    call = node.value
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr != "append":
        return None
    if not isinstance(method.value, ast.Name) or len(call.args) != 1 or call.keywords:
        return None
    if isinstance(call.args[0], ast.Starred):
        return None
    return method.value.id, call.args[0]


def _with_single_creations(body: list[ast.stmt]) -> list[ast.stmt]:
    """Replace ``a, b = [], []`` by two assignments."""

    class Splitting(ast.NodeTransformer):
        def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
            target, value = node.targets[0], node.value
            if len(node.targets) > 1 or not isinstance(target, ast.Tuple):
                return node
            if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
                return node
            if not all(isinstance(v, ast.List) and not v.elts for v in value.elts):
                return node
            pairs = zip(target.elts, value.elts, strict=True)
            return [located(node, ast.Assign([t], v)) for t, v in pairs]

    return [s for given in body for s in _as_list(Splitting().visit(given))]


def _as_list(x: ast.stmt | list[ast.stmt]) -> list[ast.stmt]:
    return x if isinstance(x, list) else [x]


def as_append_calls(body: list[ast.stmt], parameters: set[str]) -> list[ast.stmt]:
    """Replace ``out += [value]`` by ``out.append(value)``, for lists that qualify.

    Lists that are created by one statement, ``a, b = [], []``, are created one after the other.
    """
    body = _with_single_creations(body)
    if not any(isinstance(n, ast.AugAssign) for s in body for n in traverse(s)):
        return body
    statements = appends_in(body, parameters, last_reads=True).statements

    class Rewriting(ast.NodeTransformer):
        def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
            append = append_of(node)
            if node not in statements or append is None:
                return node
            method = ast.Attribute(ast.Name(append[0], ast.Load()), "append", ast.Load())
            return located(node, ast.Expr(ast.Call(method, [append[1]], [])))

    return [Rewriting().visit(s) for s in body]


def with_last_element_variables(body: list[ast.stmt], parameters: set[str]) -> list[ast.stmt]:
    """Replace the last elements of lists by variables, in the loops that fill the lists.

    Parameters
    ----------
    body : list of ast.stmt
        The body of a function, after `as_append_calls`.
    parameters : set of str
        The parameters of the function.
    """
    if not any(last_read(n) for s in body for n in traverse(s)):
        return body
    counts = {
        loop: counts_of_loop
        for loop, lengths in appends_in(body, parameters, last_reads=True).lengths.items()
        if (counts_of_loop := _counts(loop, lengths))
    }
    module = _LoopStarts(counts).visit(ast.Module(body, []))
    assert isinstance(module, ast.Module)
    return module.body


def _counts(loop: ast.stmt, lengths: Mapping[str, int]) -> dict[str, int]:
    """The number of last elements that a loop reads of each list, if the list is long enough."""
    counts: dict[str, int] = {}
    for node in traverse(loop):
        if (last := last_read(node)) is not None:
            list_name, position = last[0].id, last[1]
            counts[list_name] = max(counts.get(list_name, 0), position)
    return {n: count for n, count in counts.items() if count <= lengths.get(n, 0)}


def _variable(list_name: str, position: int) -> str:
    return f"_wg_last_{position}_{list_name}"


def _assignment(where: ast.stmt, list_name: str, values: list[ast.expr]) -> ast.stmt:
    """Assign values to the variables of the last elements of a list."""
    targets: list[ast.expr] = [
        ast.Name(_variable(list_name, k + 1), ast.Store()) for k in range(len(values))
    ]
    if len(targets) == 1:
        return located(where, ast.Assign(targets, values[0]))
    return located(
        where, ast.Assign([ast.Tuple(targets, ast.Store())], ast.Tuple(values, ast.Load()))
    )


class _LoopStarts(ast.NodeTransformer):
    """Assign the variables before loops, and replace the elements inside."""

    def __init__(self, counts: Mapping[ast.stmt, Mapping[str, int]]) -> None:
        self._counts = counts

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> ast.AST | list[ast.stmt]:
        counts = self._counts.get(node)
        if counts is None:
            return self.generic_visit(node)
        before = []
        for list_name, count in sorted(counts.items()):
            elements: list[ast.expr] = [
                ast.Subscript(
                    load(list_name), ast.UnaryOp(ast.USub(), ast.Constant(k + 1)), ast.Load()
                )
                for k in range(count)
            ]
            before.append(_assignment(node, list_name, elements))
        _LastElementReads(counts).generic_visit(node)
        return [*before, node]


class _LastElementReads(ast.NodeTransformer):
    """Replace the elements by variables inside a loop."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        last = last_read(node)
        if last is None or last[0].id not in self._counts:
            return self.generic_visit(node)
        return located(node, load(_variable(last[0].id, last[1])))

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        append = append_of(node)
        if append is None or append[0] not in self._counts:
            return node
        list_name, value = append
        earlier: list[ast.expr] = [
            load(_variable(list_name, k)) for k in range(1, self._counts[list_name])
        ]
        assert isinstance(node.value, ast.Call)
        node.value.args = [located(node, load(_variable(list_name, 1)))]
        return [_assignment(node, list_name, [value, *earlier]), node]
