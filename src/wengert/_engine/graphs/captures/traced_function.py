"""The function that is traced: without its callbacks, and with other arrays.

The part of a function that runs while it is traced: all but the callbacks that it passes.

A callback (`wg.debug.callback(record, x)`) runs when the program does, and reads what it needs
then.  What it reads is not searched and not guarded; which function it is, is guarded.  A function
whose source is not available is searched as a whole.

    TracedPart     what a function reads while it is traced, and the callbacks that it passes
    traced_part    that of a function

Substitution: the function with other arrays in place of captured ones.

While a function is traced, each object on a path to a fed array is replaced by a copy: functions by
functions with other cells and globals, containers by copies, objects by objects of the same class.
The originals are not changed, because other threads may read them; what the function writes to a
copy is written to the original after the trace has ended.

    Substitution    the replacements of one trace
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from types import CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import is_noted
from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import is_variable
from wengert._engine.core.user_functions import (
    CALLBACK_TAKERS,
    Reads,
    any_calls,
    copy_annotations,
    parameter_called,
    reads_of,
)

from .captured import Captured
from .guards import ABSENT, CaptureSource, Kind

if TYPE_CHECKING:
    from wengert._engine.frontend.rewriting import functions
else:  # for functions with callbacks
    functions = LazyModule("wengert._engine.frontend.rewriting.functions")


class TracedPart(NamedTuple):
    """What a function reads while it is traced.

    reads : Reads
        The names that it reads while it is traced.
    cells : list of CaptureSource
        The free variables among them.
    callbacks : list of (CaptureSource, set of str)
        The variables that it only passes as callbacks, each with the attributes that it passes.
    attributes : frozenset of str
        The attributes that are passed as callbacks.
    """

    reads: Reads
    cells: list[CaptureSource]
    callbacks: list[tuple[CaptureSource, set[str]]]
    attributes: frozenset[str]


def traced_part(fun: FunctionType) -> TracedPart:
    """The part of a function that runs while it is traced."""
    code, scope = fun.__code__, fun.__globals__
    reads = reads_of(code)
    sources = [
        CaptureSource(Kind.CELL, cell, None, name)
        for name, cell in zip(code.co_freevars, fun.__closure__ or (), strict=True)
    ]
    rest = None
    if (
        not reads.attributes.isdisjoint(CALLBACK_TAKERS)
        or any_calls([scope.get(name) for name in reads.globals])
        or any_calls([source.read() for source in sources])
    ):
        rest = _without_callbacks(fun, reads, sources)
    if rest is None:
        return TracedPart(reads, sources, [], frozenset())
    cells = {source.name: source for source in sources}
    remaining = reads_of(rest.code)
    passed = {name: {a for n, a in rest.variables if n == name and a} for name, _ in rest.variables}
    read = [cells.pop(name) for name in rest.code.co_freevars]
    only_passed = [source for name, source in cells.items() if name in passed]
    names = (passed.keys() & reads.globals) - remaining.globals
    only_passed += [CaptureSource(Kind.ITEM, scope, name, name) for name in sorted(names)]
    callbacks = [(source, passed[source.name]) for source in only_passed]
    return TracedPart(remaining, read, callbacks, rest.attributes)


def _without_callbacks(
    fun: FunctionType, reads: Reads, cells: list[CaptureSource]
) -> functions.WithoutCallbacks | None:
    """A function without the callbacks that it passes; None if that is not known."""
    code = fun.__code__
    values = {name: fun.__globals__.get(name, ABSENT) for name in reads.globals}
    values |= {cell.name: cell.read() for cell in cells}
    paths = functions.called_paths(code, code.co_filename)
    known = {p: _at(p, values) for p in paths if p.partition(".")[0] not in reads.written_globals}
    parameters = frozenset((p, name) for p, f in known.items() if (name := parameter_called(f)))
    if not parameters:
        return None
    partials = frozenset(p for p, f in known.items() if f is functools.partial)
    return functions.without_callbacks(code, code.co_filename, parameters, partials)


def _at(path: str, values: dict[str, Any]) -> Any:
    """The value of a dotted name whose first part is a variable; None if that is not a module."""
    root, *attributes = path.split(".")
    value = values.get(root)
    for attribute in attributes:
        if not isinstance(value, ModuleType):
            return None
        value = getattr(value, attribute, None)
    return value


if TYPE_CHECKING:
    from wengert._engine.frontend import overlay, rewritten_functions
else:  # for functions that a trace passes as callbacks
    overlay = LazyModule("wengert._engine.frontend.overlay")
    rewritten_functions = LazyModule("wengert._engine.frontend.rewritten_functions")

Change = Callable[[], None]


class Substitution:
    """Replacements of captured objects.

    Parameters
    ----------
    captured : Captured
        The captured values, and the objects through which they are reached.
    arrays : mapping from str to object
        The replacement of each fed array and number, by its name.
    """

    def __init__(self, captured: Captured, arrays: Mapping[str, Any]) -> None:
        self._found = captured.objects
        self._replacements: dict[int, Any] = {
            key: arrays[name] for key, name in captured.identities.items()
        }
        numbers = captured.numbers.items()
        self._numbers = {n.source.location: arrays[name] for name, n in numbers}
        parents = {number.parent for _, number in numbers}
        self._needed = self._ancestors(set(captured.identities) | parents)
        self._scopes: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._cells: dict[int, CellType] = {}
        self._changes: list[Change] = []
        self._restored: dict[int, tuple[Any, Any]] = {}
        self._original_cells: dict[int, CellType] = {}

    def _ancestors(self, arrays: set[int]) -> set[int]:
        parents: dict[int, list[int]] = {}
        for key, captured in self._found.items():
            if captured.replaceable:
                for child in captured.children:
                    parents.setdefault(child, []).append(key)
        needed, pending = set(arrays), list(arrays)
        while pending:
            for key in parents.get(pending.pop(), ()):
                if key not in needed:
                    needed.add(key)
                    pending.append(key)
        return needed

    def of(self, x: Any) -> Any:
        """The replacement of an object; the object itself if it leads to no fed array."""
        key = id(x)
        if key not in self._needed or (key in self._found and self._found[key].value is not x):
            return x
        if key not in self._replacements:
            self._replace(key, x)
        return self._replacements[key]

    def original(self, x: Any) -> Any:
        """The object that a replacement stands for; an object that is not one itself."""
        for key, replacement in self._replacements.items():
            if replacement is x and key in self._found:
                return self._found[key].value
        return next((own for own, scope in self._scopes.values() if scope is x), x)

    def restored(self, x: Any) -> Any:
        """The user's object in place of a copy; a function with the user's variables.

        A function that was defined by a copy has its globals and cells.
        """
        if id(x) not in self._restored:
            self._restored[id(x)] = x, x  # for functions that refer to each other
            self._restored[id(x)] = x, self._restore(x)
        return self._restored[id(x)][1]

    def _restore(self, x: Any) -> Any:
        if isinstance(x, MethodType):
            return MethodType(self.restored(x.__func__), self.restored(x.__self__))
        if type(x) is functools.partial:
            keywords = {k: self.restored(v) for k, v in x.keywords.items()}
            return functools.partial(self.restored(x.func), *map(self.restored, x.args), **keywords)
        if not isinstance(x, FunctionType):
            return x if isinstance(x, Handle) else self.original(x)
        fun = rewritten_functions.users_function(x)
        known = self.original(fun)
        return known if known is not fun else self._with_originals(fun)

    def _with_originals(self, fun: FunctionType) -> FunctionType:
        """A function with the original globals, cells and defaults."""
        scope, cells = fun.__globals__, fun.__closure__ or ()
        namespace = overlay.original_globals(scope, self.original)
        closure = tuple(map(self._original_cell, cells))
        defaults = fun.__defaults__ and tuple(map(self.restored, fun.__defaults__))
        same = namespace is scope and all(a is b for a, b in zip(cells, closure, strict=True))
        if same and all(map(operator.is_, fun.__defaults__ or (), defaults or ())):
            return fun
        new = FunctionType(fun.__code__, namespace, fun.__name__, defaults, closure)
        new.__kwdefaults__ = fun.__kwdefaults__
        vars(new).update(vars(fun))
        new.__qualname__, new.__module__ = fun.__qualname__, fun.__module__
        return new

    def _original_cell(self, cell: CellType) -> CellType:
        original = self._original_cells.get(id(cell))
        if original is not None:
            return original
        try:
            contents = cell.cell_contents
        except ValueError:
            return cell
        restored = self.restored(contents)
        new = cell if restored is contents else CellType(restored)
        self._original_cells[id(cell)] = new
        return new

    def write_back(self) -> None:
        """Apply the changes of copies to the originals."""
        for change in self._changes:
            change()

    # ---- copies --------------------------------------------------------------------------------

    def _replace(self, key: int, x: Any) -> None:
        if isinstance(x, FunctionType):
            self._function(key, x)
        elif isinstance(x, MethodType):
            self._replacements[key] = MethodType(self.of(x.__func__), self.of(x.__self__))
        elif isinstance(x, functools.partial):
            keywords = {k: self.of(v) for k, v in x.keywords.items()}
            partial = type(x)(self.of(x.func), *map(self.of, x.args), **keywords)
            vars(partial).update(vars(x))
            self._replacements[key] = partial
        elif isinstance(x, ModuleType):
            self._module(key, x)
        elif isinstance(x, dict):
            self._dict(key, x)
        elif isinstance(x, list):
            self._list(key, x)
        elif isinstance(x, tuple):
            items = [self.of(v) for v in x]
            self._replacements[key] = type(x)(*items) if hasattr(x, "_fields") else tuple(items)
        elif hasattr(x, "_fun"):  # a compiled function: inside a trace the function itself
            self._replacements[key] = self.of(x._fun)
        else:
            self._object(key, x)

    def _function(self, key: int, fun: FunctionType) -> None:
        function = FunctionType(
            fun.__code__, self._scope(fun), fun.__name__, None, self._closure(fun)
        )
        self._replacements[key] = function  # stored first, because what follows may refer to it
        function.__defaults__ = fun.__defaults__ and tuple(map(self.of, fun.__defaults__))
        keyword_defaults = fun.__kwdefaults__
        function.__kwdefaults__ = keyword_defaults and {
            k: self.of(v) for k, v in keyword_defaults.items()
        }
        function.__qualname__, function.__module__ = fun.__qualname__, fun.__module__
        function.__doc__ = fun.__doc__
        copy_annotations(function, fun)
        self._entries(vars(fun), vars(function), function)
        self._fill(fun)

    def _scope(self, fun: FunctionType) -> dict[str, Any]:
        """The copied globals of a function; functions of one module share them."""
        namespace = fun.__globals__
        if id(namespace) not in self._scopes:
            self._scopes[id(namespace)] = namespace, dict(namespace)
        return self._scopes[id(namespace)][1]

    def _fill(self, fun: FunctionType) -> None:
        """Replace the globals and cell contents that a function reads."""
        namespace, scope, reads = fun.__globals__, self._scope(fun), reads_of(fun.__code__)
        names = reads.globals | namespace.keys() if reads.any_global else reads.globals
        for name in names - reads.written_globals:
            if name in namespace and scope[name] is namespace[name]:
                scope[name] = self._item(namespace, name, namespace[name])
        for name in reads.written_globals:
            self._changes.append(functools.partial(_update_global, namespace, scope, name))
        for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            new_cell = self._cells.get(id(cell))
            if new_cell is not None and name not in reads.written_cells:
                number = self._numbers.get((Kind.CELL, id(cell), None), ABSENT)
                contents = cell.cell_contents
                new_cell.cell_contents = self.of(contents) if number is ABSENT else number

    def _closure(self, fun: FunctionType) -> tuple[CellType, ...]:
        written = reads_of(fun.__code__).written_cells
        return tuple(
            self._cell(cell) if variable not in written else cell
            for variable, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True)
        )

    def _cell(self, cell: CellType) -> CellType:
        """The cell itself, or a new one if its contents are replaced."""
        try:
            contents = cell.cell_contents
        except ValueError:
            return cell
        is_fed = (Kind.CELL, id(cell), None) in self._numbers
        if not is_fed and id(contents) not in self._needed:
            return cell
        new = self._cells.setdefault(id(cell), CellType(contents))
        self._original_cells[id(new)] = cell
        return new

    def _item(self, holder: dict[Any, Any], key: Any, value: Any) -> Any:
        """The replacement of an entry of a dict."""
        number = self._numbers.get((Kind.ITEM, id(holder), key), ABSENT)
        return self.of(value) if number is ABSENT else number

    def _module(self, key: int, module: ModuleType) -> None:
        new_module = ModuleType(module.__name__)
        self._replacements[key] = new_module
        vars(new_module).update(vars(module))
        self._entries(vars(module), vars(new_module), new_module)

    def _entries(self, original: dict[str, Any], new: dict[str, Any], holder: object) -> None:
        """Fill a namespace, whose changes are written back."""
        new.update(original)
        for name, value in list(original.items()):
            new[name] = self._item(original, name, value)
        self._changes.append(functools.partial(_update, original, new, dict(new), holder))

    def _dict(self, key: int, x: dict[Any, Any]) -> None:
        new = x.copy()
        self._replacements[key] = new
        for k, value in x.items():
            new[k] = self._item(x, k, value)
        self._changes.append(functools.partial(_update, x, new, dict(new), new))

    def _list(self, key: int, x: list[Any]) -> None:
        new: list[Any] = []
        self._replacements[key] = new
        for k, value in enumerate(x):
            number = self._numbers.get((Kind.INDEX, id(x), k), ABSENT)
            new.append(self.of(value) if number is ABSENT else number)
        self._changes.append(functools.partial(_update_list, x, new, list(new)))

    def _object(self, key: int, x: Any) -> None:
        cls = type(x)
        new = cls() if cls.__module__ == "types" else object.__new__(cls)
        self._replacements[key] = new
        for child in self._found[key].children:
            value = self._found[child].value
            if isinstance(value, FunctionType) and child in self._needed:
                self._method(x, new, value)
        self._entries(vars(x), vars(new), new)

    def _method(self, x: Any, new: Any, fun: FunctionType) -> None:
        """Override a method by an attribute of the copy, because its class is not copied."""
        for base in type(x).__mro__:
            for name, value in vars(base).items():
                if value is fun and getattr(type(x), name, None) is fun and name not in vars(x):
                    vars(new)[name] = MethodType(self.of(fun), new)


def _update_global(namespace: dict[str, Any], scope: dict[str, Any], name: str) -> None:
    if name in scope:
        if not _is_assigned_later(scope, scope[name]):
            namespace[name] = scope[name]
    else:
        namespace.pop(name, None)


def _is_assigned_later(holder: object, value: Any) -> bool:
    """Whether a value depends on arguments, and is assigned after each run (assigned_parts.py)."""
    return is_noted(holder) and any(
        isinstance(x, Handle) and is_traced(x) and not is_variable(x.node)
        for x in pytree.flatten(value)[0]
    )


def _update(
    original: dict[Any, Any], new: dict[Any, Any], before: dict[Any, Any], holder: object
) -> None:
    """Apply the changes of a copy of a dict, or of the namespace of `holder`, to the original."""
    for key, value in new.items():
        if before.get(key, ABSENT) is not value and not _is_assigned_later(holder, value):
            original[key] = value
    for key in before.keys() - new.keys():
        original.pop(key, None)


def _update_list(original: list[Any], changed: list[Any], before: list[Any]) -> None:
    if len(changed) == len(before) and all(a is b for a, b in zip(changed, before, strict=True)):
        return
    if any(_is_assigned_later(changed, x) for x in changed):
        return
    originals = {id(copy): element for copy, element in zip(before, original, strict=True)}
    original[:] = [originals.get(id(x), x) for x in changed]
