"""The labels and the values of objects of pandas, xarray and pint.

labels_of    the labels and the values of an object
constant     a Series or a DataFrame as an operand of a tensor

Derivatives with respect to objects with labels or units, and compiled functions of them.

    value_and_grad, jacobian, vjp, linearize
                                          the counterparts of autodiff
    PlainCall                             the call with values
    stripped, labelled                    values of a tree, and back
    with_values                           an object with other values
    constant                              an object of pandas as an operand of a tensor
    LabelledContainer                     labels and values as a container with one leaf
    with_containers                       arguments with such containers
    without                               results without them
    function_of                           the function of containers that is compiled

Each function here is called by a transformation that has found such an argument.  It calls the
transformation again, with the values of the arguments and a function of values, and gives the
results labels and units.

The labels are part of the structure of the arguments, as keys of a dict are: a call with other
labels compiles another program.  The values are inputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import optree

from wengert._engine.autodiff import grad, jacobians, jvp_vjp
from wengert._engine.autodiff.arguments import Argnums, derived, is_single, positions_of
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.other_libraries import LabelledTensor, is_labelled
from wengert.errors import ArgumentError, NotDifferentiableError, StructureError, at, user_line

from . import labels as units
from .labels import NONE, Labels, Refused, derivative

if TYPE_CHECKING:
    from . import pandas_tensors, xarray_labels
else:  # imported when an object of the library is met
    pandas_tensors = LazyModule("wengert._engine.labelled_arrays.pandas_tensors")
    xarray_labels = LazyModule("wengert._engine.labelled_arrays.xarray_labels")


def labels_of(x: Any) -> tuple[Labels, Any] | None:
    """The labels of an object, and its values: an array, a number or a tensor.

    None for an object without labels.

    Raises
    ------
    Refused
        The meaning of a derivative with respect to it is not clear.
    """
    if isinstance(x, LabelledTensor):
        return Labels(x.labels), x.values
    if not is_labelled(x):
        return None
    package = type(x).__module__.partition(".")[0]
    if package == "pandas":
        axes, values = pandas_tensors.axes_of(x)
        return Labels(axes), values
    if package == "xarray":
        array_axes, data = xarray_labels.axes_of(x)
        inner = labels_of(data)
        if inner is None:
            return Labels(array_axes), data
        return Labels(array_axes, inner[0].unit), inner[1]
    unit, values = units.unit_of(x)
    if unit is None:
        raise Refused(f"a Quantity in {x.units}", units.OFFSET)
    is_number = hasattr(values, "dtype") or isinstance(values, float | int)
    if is_labelled(values) or not is_number:
        raise Refused(f"a Quantity of a {type(values).__name__}", "Make it one of an array")
    return Labels(None, unit), values


def constant(x: object) -> Any:
    """A Series or a DataFrame with its values as they are, as an operand of a tensor."""
    return pandas_tensors.constant(x)


__all__ = ["constant", "jacobian", "linearize", "value_and_grad", "vjp", "with_values"]


def stripped(tree: object, what: str) -> tuple[Any, list[Labels]]:
    """A tree with values in place of objects with labels, and the labels of each leaf.

    Raises
    ------
    NotDifferentiableError
        The meaning of an object is not clear.
    """
    leaves, structure = pytree.flatten(tree)
    found: list[Labels] = []
    values: list[Any] = []
    for i, leaf in enumerate(leaves):
        try:
            labels, value = labels_of(leaf) or (NONE, leaf)
        except Refused as refused:
            path = pytree.paths(tree)[i]
            raise NotDifferentiableError(
                f"{what}: {'the one at ' + path if path else 'it'} is {refused.kind}, which has no "
                f"derivative here. {refused.remedy}{at(user_line())}."
            ) from None
        found.append(labels)
        values.append(value)
    return pytree.unflatten(structure, values), found


def labelled(tree: object, labels: Sequence[Labels]) -> Any:
    """The inverse of `stripped`: leaves with labels."""
    if all(own is NONE for own in labels):
        return tree
    leaves, structure = pytree.flatten(tree)
    pairs = zip(labels, leaves, strict=True)
    return pytree.unflatten(structure, [own.wrap(x) for own, x in pairs])


def with_values(x: object, convert: Callable[[Any], Any]) -> Any:
    """An object with its values converted; itself if it has no values of one dtype."""
    try:
        found = labels_of(x)
    except Refused:
        return x
    return x if found is None else found[0].wrap(convert(found[1]))


class PlainCall:
    """A call of a function with the values of objects with labels.

    Parameters
    ----------
    fun : callable
    args, kwargs : tuple, dict
    positions, names : list
        The arguments of which values are passed.
    what : str
        The transformation, for messages.

    Attributes
    ----------
    fun : callable
        The function of values, which returns values.
    args, kwargs : tuple, dict
    labels : list of list of Labels
        For each argument of which values are passed, those of its leaves.
    outputs : list of Labels
        Those of the leaves of the output, once `fun` has run.
    structure : object
        The structure of the output.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        positions: Sequence[int],
        names: Sequence[str],
        what: str,
    ) -> None:
        self._what, self._of = what, fun
        self._positions, self._names = positions, names
        chosen = [*[args[p] for p in positions], *[kwargs[n] for n in names]]
        pairs = [stripped(x, f"{what}, an argument") for x in chosen]
        self.labels = [labels for _, labels in pairs]
        self.args, self.kwargs = self._replaced(args, kwargs, [values for values, _ in pairs])
        self.outputs: list[Labels] = []
        self.structure: Any = None

        @functools.wraps(fun)
        def plain(*args: Any, **kwargs: Any) -> Any:
            return self._run(args, kwargs)

        plain.is_of_values = True  # type: ignore[attr-defined]
        self.fun = plain

    def _replaced(
        self, args: Sequence[Any], kwargs: dict[str, Any], chosen: Sequence[Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with `chosen` in place of those of which values are passed."""
        new_args, new_kwargs = list(args), dict(kwargs)
        for p, x in zip(self._positions, chosen, strict=False):
            new_args[p] = x
        for n, x in zip(self._names, chosen[len(self._positions) :], strict=True):
            new_kwargs[n] = x
        return new_args, new_kwargs

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        chosen = [*[args[p] for p in self._positions], *[kwargs[n] for n in self._names]]
        objects = [labelled(x, own) for x, own in zip(chosen, self.labels, strict=True)]
        new_args, new_kwargs = self._replaced(args, kwargs, objects)
        out = converted(self._of)(*new_args, **new_kwargs)
        plain, self.outputs = stripped(out, f"{self._what}, the result")
        self.structure = pytree.flatten(plain)[1]
        return plain

    def output(self, tree: object) -> Any:
        """The output with its labels."""
        return labelled(tree, self.outputs)

    def derivatives(self, tree: Any, single: bool, out: Labels) -> Any:
        """Derivatives of one output with labels: of one argument, or a tuple."""
        trees = (tree,) if single else tree
        found = []
        for x, labels in zip(trees, self.labels, strict=True):
            leaves, structure = pytree.flatten(x)
            parts = [
                None if leaf is None else derivative(leaf, out, own, self._what)
                for leaf, own in zip(leaves, labels, strict=True)
            ]
            found.append(pytree.unflatten(structure, parts))
        return found[0] if single else tuple(found)


def _of_argnums(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: Argnums,
    argnames: str | Sequence[str] | None,
    what: str,
) -> PlainCall:
    positions, names = positions_of(fun, args, kwargs, argnums, argnames, what)
    return PlainCall(fun, args, kwargs, positions, names, what)


def value_and_grad(
    fun: Callable[..., Any],
    what: str,
    argnums: Argnums,
    argnames: str | Sequence[str] | None,
    has_aux: bool,
    unconnected: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The value and the gradient: `autodiff.grad.value_and_grad`."""
    call = _of_argnums(fun, args, kwargs, argnums, argnames, what)
    value, bars = grad.value_and_gradient(
        call.fun, what, argnums, argnames, has_aux, unconnected, *call.args, **call.kwargs
    )
    single = is_single(argnums, argnames)
    return call.output(value), call.derivatives(bars, single, call.outputs[0])


def jacobian(
    fun: Callable[..., Any],
    argnums: Argnums,
    argnames: str | Sequence[str] | None,
    mode: str,
    name: str,
    what: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The Jacobian: `autodiff.jacobians.jacobian`."""
    call = _of_argnums(fun, args, kwargs, argnums, argnames, what)
    blocks = jacobians.jacobian_of(
        call.fun, argnums, argnames, mode, name, *call.args, **call.kwargs
    )
    single = is_single(argnums, argnames)
    rows = zip(call.structure.flatten_up_to(blocks), call.outputs, strict=True)
    return pytree.unflatten(
        call.structure, [call.derivatives(row, single, out) for row, out in rows]
    )


def vjp(fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, messages: Any) -> Any:
    """The value and a pullback: `autodiff.jvp_vjp.vjp`."""
    what = f"vjp of {getattr(fun, '__name__', type(fun).__name__)}"
    call = PlainCall(fun, primals, {}, range(len(primals)), (), what)
    outputs, plain_pull, *aux = jvp_vjp.vjp_of(call.fun, tuple(call.args), has_aux, messages)
    count = call.structure.num_leaves if not has_aux else pytree.flatten(outputs)[1].num_leaves
    labels, more = call.outputs[:count], call.outputs[count:]

    def pull(cotangents: object) -> Any:
        """Cotangents of the primals, given cotangents of the outputs."""
        values, unit = _scaled(cotangents, labels, what, cotangents=True)
        return call.derivatives(plain_pull(values), False, Labels(None, unit))

    if has_aux:
        return labelled(outputs, labels), pull, labelled(aux[0], more)
    return labelled(outputs, labels), pull


def linearize(fun: Callable[..., Any], primals: tuple[Any, ...], what: str) -> Any:
    """The value and the derivative as a function: `autodiff.jvp_vjp.linearize`."""
    call = PlainCall(fun, primals, {}, range(len(primals)), (), what)
    outputs, plain_push = jvp_vjp.linearize_of(call.fun, tuple(call.args), what)
    labels = [own for labels in call.labels for own in labels]

    def push(*tangents: object) -> Any:
        """Tangents of the outputs, given tangents of the primals."""
        values, unit = _scaled(tangents, labels, what, cotangents=False)
        leaves, structure = pytree.flatten(plain_push(*values))
        pairs = zip(leaves, call.outputs, strict=True)
        tangents_out = [None if x is None else _tangent(own, unit).wrap(x) for x, own in pairs]
        return pytree.unflatten(structure, tangents_out)

    return call.output(outputs), push


def _tangent(own: Labels, unit: Any) -> Labels:
    axes = None if own.axes is None else own.axes.of_derivative()
    return Labels(axes, units.product(own.unit, unit))


def _scaled(tree: object, labels: Sequence[Labels], what: str, cotangents: bool) -> tuple[Any, Any]:
    """Values of tangents or cotangents, and the unit of what they are multiplied with.

    A tangent is a number of units of its argument: the derivative times it has the unit of the
    output.  If tangents have other units, or none, the result has the unit of the derivative times
    that of the tangent, which must be the same for all of them.
    """
    noun = "cotangent" if cotangents else "tangent"
    plain, found = stripped(tree, f"{what}, a {noun}")
    leaves, structure = pytree.flatten(plain)
    if len(leaves) != len(labels):
        return plain, None  # the transformation raises
    unit: Any = None
    is_first = True
    scaled = []
    for leaf, given, own in zip(leaves, found, labels, strict=True):
        if given.axes is not None and (own.axes is None or not own.axes.agrees(given.axes)):
            raise StructureError(
                f"{what}: the labels of a {noun} are not those of its "
                f"{'output' if cotangents else 'primal'}. Give them the same labels, in the same "
                f"order{at(user_line())}."
            )
        if leaf is None or (given.unit is None and own.unit is None):
            this = None
        elif cotangents:
            this = units.product(given.unit, own.unit)
        else:
            this = _ratio(given.unit, own.unit)
        if leaf is not None:
            unit, is_first = (this, False) if is_first else (unit, is_first)
            factor = units.factor(this, unit, what)
            leaf = leaf if factor == 1.0 else leaf * factor
            if not cotangents and this is None and given.unit != own.unit:
                leaf = leaf * units.factor(given.unit, own.unit, what)
        scaled.append(leaf)
    return pytree.unflatten(structure, scaled), unit


def _ratio(tangent: Any, primal: Any) -> Any:
    """The unit of a tangent over that of its primal; None if they are of one dimension."""
    if tangent is not None and primal is not None and tangent.is_compatible_with(primal):
        return None
    return units.quotient(tangent, primal)


class LabelledContainer:
    """Labels and values: a container with one leaf."""

    __slots__ = ("labels", "values")

    def __init__(self, labels: Labels, values: Any) -> None:
        self.labels, self.values = labels, values


def _flattened(x: LabelledContainer) -> tuple[tuple[Any], Labels, tuple[str]]:
    return (x.values,), x.labels, ("values",)


def _unflattened(labels: Labels, children: Iterable[Any]) -> LabelledContainer:
    return LabelledContainer(labels, next(iter(children)))


_register: Any = optree.register_pytree_node  # typed for collections only
_register(LabelledContainer, _flattened, _unflattened, namespace=pytree.NAMESPACE)


def with_containers(tree: object, what: str) -> Any:
    """A tree with containers in place of objects with labels; itself if there are none.

    Raises
    ------
    ArgumentError
        The values of an object are not numbers of one dtype.
    """
    leaves, structure = pytree.flatten(tree)
    items, changed = [], False
    for leaf in leaves:
        try:
            found = labels_of(leaf)
        except Refused as refused:
            raise ArgumentError(
                f"{what} {refused.kind}, not numbers. {refused.remedy}, or list the argument in "
                f"static_argnames{at(user_line())}."
            ) from None
        changed = changed or found is not None
        items.append(leaf if found is None else LabelledContainer(*found))
    return pytree.unflatten(structure, items) if changed else tree


def without(tree: Any) -> Any:
    """A tree with objects with labels in place of containers."""
    pytree.flatten(tree)  # registers new classes of containers
    found = optree.tree_leaves(
        tree, is_leaf=_is_container, none_is_leaf=True, namespace=pytree.NAMESPACE
    )
    if not any(map(_is_container, found)):
        return tree
    return optree.tree_map(
        lambda x: x.labels.wrap(x.values) if _is_container(x) else x,
        tree,
        is_leaf=_is_container,
        none_is_leaf=True,
        namespace=pytree.NAMESPACE,
    )


def _is_container(x: object) -> bool:
    return type(x) is LabelledContainer


def function_of(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function of containers that is compiled in place of `fun`."""
    function = derived(fun, _run, fun, name="jit")
    function.is_of_values = True  # type: ignore[attr-defined]
    return function


def _run(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    new_args = [without(x) for x in args]
    new_kwargs = {k: without(x) for k, x in kwargs.items()}
    out = converted(fun)(*new_args, **new_kwargs)
    name = getattr(fun, "__name__", type(fun).__name__)
    return with_containers(out, f"the calls function {name} returned")
