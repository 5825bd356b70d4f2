"""Elements of lists, entries of dicts and attributes of objects that loops and branches assign.

The compiled function has NumPy's value, its gradient agrees with the eager gradient, and a loop has
one node, whatever its length. The loops in `UNROLLED` are run by Python, with equal results.
"""

import collections
import dataclasses

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

N = 30
X = np.linspace(0.2, 1.2, N)


class Body:
    """A plain object."""

    def __init__(self, position):
        self.position, self.speed, self.count = position, 0.0, 0
        self.history = np.zeros(3)

    def step(self, force):
        self.speed += 0.1 * force
        self.position = self.position + 0.1 * self.speed
        self.count += 1

    def remember(self):
        self.history[0] = self.position
        self.history = self.history * 0.9


@dataclasses.dataclass
class State:
    x: object
    v: object


@dataclasses.dataclass(slots=True)
class Slotted:
    x: object
    v: object


def elements_of_a_list(x):
    states = [x[0], x[1:4], 0]
    for i in range(N):
        states[0] = np.sin(states[0]) + x[i]
        states[1] = states[1] * states[0] * 0.5
        states[2] += 1
    return states[0] + np.sum(states[1]) * states[2]


def elements_by_an_inner_loop(x):
    states = [(x[2 * k], x[k : k + 3]) for k in range(3)]
    for i in range(N):
        y = x[i]
        for k in range(3):
            h, c = states[k]
            states[k] = (np.tanh(h * 0.5 + y), c * 0.9 + h)
            y = states[k][0]
    return sum(h * np.sum(c) for h, c in states)


def elements_of_elements(x):
    table = [[x[0], x[1]], [x[2], x[3]]]
    for i in range(N):
        for j in range(2):
            for k in range(2):
                table[j][k] = np.cos(table[k][j]) * x[i]
    return table[0][0] + 2 * table[0][1] + 3 * table[1][0] + 4 * table[1][1]


def entries_of_a_dict(x):
    d = {"a": x[0], 1: x[1:3]}
    for i in range(N):
        d["a"] = d["a"] * 0.9 + x[i]
        d[1] += d["a"]
    return d["a"] * np.prod(d[1])


def attributes(x):
    body = Body(x[0])
    for i in range(N):
        body.step(x[i] - body.position)
    return body.position * body.speed + body.count


def attributes_with_names(x):
    body = Body(x[0])
    for i in range(N):
        setattr(body, "position", getattr(body, "position") * 0.9 + x[i])  # noqa: B009, B010
    return body.position


def attributes_of_a_dataclass(x):
    state = State(x[0], x[1:4])
    for i in range(N):
        state.x += 0.1 * state.v[0]
        state.v = state.v * 0.9 - 0.1 * state.x * x[i]
    return state.x + np.sum(state.v)


def slots(x):
    state = Slotted(x[0], x[1:4])
    for i in range(N):
        state.x += 0.1 * state.v[0]
        state.v = state.v * 0.9 - 0.1 * state.x * x[i]
    return state.x + np.sum(state.v)


def changed_and_returned(x):
    def step(s, force):
        s.v = s.v + 0.1 * force
        s.x = s.x + 0.1 * s.v
        return s

    state = first = State(x[0], x[1])
    for i in range(N):
        state = step(state, x[i] - state.x)
    return state.x * first.v


def replaced_objects(x):
    state = State(x[0], x[1])
    for i in range(N):
        state = dataclasses.replace(state, x=state.x * 0.9 + x[i])
        state.v = state.v + state.x
    return state.x * state.v


def attributes_of_attributes(x):
    outer = State(Body(x[0]), [x[1], State(x[2], x[3])])
    for i in range(N):
        outer.x.step(x[i])
        outer.v[0] = outer.v[0] * 0.9 + outer.x.position
        outer.v[1].x += outer.v[0]
    return outer.v[0] + outer.v[1].x + outer.x.speed


def objects_in_an_attribute(x):
    outer = Body(State(x[0], x[1]))
    for i in range(N):
        outer.position = State(outer.position.v * x[i], outer.position.x)
    return outer.position.x + 2 * outer.position.v


def two_names_of_a_list(x):
    s = [x[0], x[1]]
    t = s
    for i in range(N):
        s[0] = s[0] * 0.9 + x[i]
        t[1] = t[0] + t[1]
    return s[1] + t[0]


def a_name_bound_to_a_list_in_the_loop(x):
    s = [x[0], x[1]]
    for i in range(N):
        t = s
        t[0] = t[0] * 0.9 + x[i]
        s[1] = t[0] + t[1]
    return s[1] + s[0]


def one_branch(x):
    body = Body(x[0])
    for i in range(N):
        if x[i] > body.position:
            body.step(x[i])
            body.history = body.history + x[i]
        else:
            body.speed *= 0.5
    return body.position * body.speed + body.count + np.sum(body.history)


def branches_outside_of_loops(x):
    d, s = {"a": x[0]}, [x[0], x[1]]
    if x[1] > 0.5:
        d["a"] = d["a"] * 2
        d["b"] = x[2]
        s[0] = x[3]
    else:
        d["b"] = x[4] * 3
        s[1] = s[0] * x[4]
    return d["a"] * d["b"] + s[0] * s[1]


def a_conditional_expression(x):
    body = Body(x[0])

    def moved(by):
        body.position = body.position + by
        return body.position

    y = moved(x[1]) if x[0] > 0 else moved(x[2]) * 2
    return y * body.position


def an_element_selected_by_a_branch(x):
    s = [x[0], x[1]]
    for i in range(N):
        if x[i] > 0.6:
            s[0] = s[0] + x[i] * s[1]
        else:
            s[1] = s[1] + x[i]
    return s[0] * s[1]


def while_loops(x):
    state = State(x[0], 0)
    while state.x < 20.0:
        state.x = state.x * 1.1 + x[1]
        state.v += 1
    return state.x * state.v


def left_by_break(x):
    body = Body(x[0])
    for i in range(N):
        body.step(x[i])
        if body.position > 1.0:
            break
        body.speed += 0.01
    return body.position * body.speed + body.count


def nested_loops(x):
    body, s = Body(x[0]), [0.0, 1.0]
    for i in range(N):
        for j in range(N):
            body.step(x[j] - body.position)
            s[0] += body.speed * x[i]
        s[1] = s[1] * 0.9 + s[0]
    return body.position + s[0] * s[1]


def none_before_the_first_iteration(x):
    body = Body(x[0])
    body.last = None
    for i in range(N):
        if body.last is not None:
            body.position += body.last
        body.last = x[i] * body.position * 0.1
    return body.position + body.last


def no_attribute_before_the_first_iteration(x):
    body = Body(x[0])
    for i in range(N):
        body.new = x[i] * body.position
        body.position = body.position * 0.9 + body.new * 0.1
    return body.new


def arrays_written_in_place(x):
    body = Body(x[0])
    for i in range(N):
        body.history[i % 3] += x[i] * body.position
        body.position = body.position * 0.9 + np.sum(body.history) * 0.01
    return body.position * np.sum(body.history)


def methods_of_containers(x):
    d, s = {"a": x[0]}, [x[0], x[1], x[2]]
    for i in range(N):
        d.update(a=d["a"] * 0.9 + x[i])
        s.insert(0, d["a"] * s[2])
        s.pop()
        s.reverse()
    return d["a"] + s[0] + 2 * s[1] + 3 * s[2]


def lists_made_in_the_loop(x):
    total = 0.0
    for i in range(N):
        pair = [0.0, x[i]]
        pair[0] = pair[1] ** 2
        d = dict(a=pair[0])
        d["b"] = d["a"] * x[i]
        other = list(pair)
        other[1] = d["b"]
        total += pair[0] * other[1] + pair[1]
    return total


def a_list_appended_beside(x):
    body = Body(x[0])
    out = []
    for i in range(N):
        body.step(x[i])
        out.append(body.position)
    return np.sum(np.array(out) * x)


def a_generator_of_steps(x):
    state = State(x[0], x[1])

    def step(force):
        state.v += force
        state.x += state.v * 0.1
        return state.x

    return sum(step(x[i]) for i in range(N)) + state.v


def an_unassigned_object_is_kept(x):
    body = Body(x[0])
    other = body
    for i in range(N):
        body.step(x[i])
    body.position = body.position + 1.0
    return other.position


LOOPS = [
    elements_of_a_list, elements_by_an_inner_loop, elements_of_elements, entries_of_a_dict,
    attributes, attributes_with_names, attributes_of_a_dataclass, slots, changed_and_returned,
    replaced_objects, attributes_of_attributes, objects_in_an_attribute, two_names_of_a_list,
    a_name_bound_to_a_list_in_the_loop, one_branch, branches_outside_of_loops,
    a_conditional_expression, an_element_selected_by_a_branch, while_loops, left_by_break,
    nested_loops, none_before_the_first_iteration, no_attribute_before_the_first_iteration,
    arrays_written_in_place, methods_of_containers, lists_made_in_the_loop, a_list_appended_beside,
    a_generator_of_steps, an_unassigned_object_is_kept,
]  # fmt: skip


class Guarded:
    """An object whose changes run code."""

    def __init__(self, x):
        self._x = x
        self.changes = []

    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, value):
        self.changes.append(1)
        self._x = value


class Checked:
    """An object that checks what it is assigned."""

    def __setattr__(self, name, value):
        assert not isinstance(value, str)
        object.__setattr__(self, name, value)


def properties(x):
    thing = Guarded(x[0])
    for i in range(N):
        thing.x = thing.x * 0.9 + x[i]
    return thing.x * len(thing.changes)


class Bounded:
    """An object with properties that are set."""

    def __init__(self, x):
        self._x, self.count = x, 0

    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, value):
        self.count += 1
        for _ in range(12):
            value = value * 0.99
        self._x = value if value < 5.0 else 5.0


def properties_that_are_set(x):
    thing = Bounded(x[0])
    for i in range(N):
        thing.x = thing.x * 0.9 + x[i]
        thing.x += 0.1
        if x[i] > 0.5:
            thing.x *= 0.5
    return thing.x * thing.count


def checked_attributes(x):
    thing = Checked()
    thing.x = x[0]
    for i in range(N):
        thing.x = thing.x * 0.9 + x[i]
    return thing.x


def queues(x):
    last = collections.deque([x[0], x[1]], maxlen=2)
    for i in range(N):
        last.append(last[0] * 0.9 + x[i])
    return last[0] * last[1]


def iterators(x):
    numbers, s = iter(range(N)), 0.0
    for i in range(N):
        s += x[i] * next(numbers)
    return s


def growing_lists(x):
    out, body = [], Body(x[0])
    body.out = out
    for i in range(N):
        body.out += [body.position * x[i]]
        body.position = body.out[-1] + 1.0
    return sum(out)


def swapped_lists(x):
    a, b = [x[0]], [x[1]]
    for i in range(N + 1):
        a[0] = a[0] * 0.9 + x[i % N]
        a, b = b, a
    return a[0] + 2 * b[0]


def other_objects_in_each_iteration(x):
    bodies = [Body(x[k]) for k in range(N)]
    for body in bodies:
        body.position = body.position * 2 + bodies[0].position
    return sum(body.position for body in bodies)


def the_same_object_appended(x):
    state, out = State(x[0], 0.0), []
    for i in range(N):
        state.x = state.x * 0.9 + x[i]
        out.append(state)
    return sum(s.x for s in out)


class Vector:
    """An object with an operator that changes it."""

    def __init__(self, x):
        self.x = x

    def __iadd__(self, other):
        self.x = self.x + other
        return self


def operators_that_change_objects(x):
    v = Vector(x[0])
    for i in range(N):
        v += x[i]
    return v.x


NAMES = {}
exec("def add(body, by):\n    body.position = body.position * 0.9 + by", NAMES)


def functions_without_source(x):
    body = Body(x[0])
    for i in range(N):
        NAMES["add"](body, x[i])
    return body.position


LOOPS.append(properties_that_are_set)
UNROLLED = [
    operators_that_change_objects, functions_without_source, properties, checked_attributes, queues,
    iterators, growing_lists, swapped_lists, other_objects_in_each_iteration,
    the_same_object_appended,
]  # fmt: skip


@pytest.mark.sample(7)
@pytest.mark.parametrize("f", LOOPS + UNROLLED, ids=lambda f: f.__name__)
def test_compiled_functions_are_right(f):
    np.testing.assert_allclose(wg.jit(f)(X.copy()), f(X.copy()), rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), wg.grad(f)(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_loops_are_nodes(f):
    assert len(wg.trace(f)(X).nodes) < 100


def test_the_eager_gradient_agrees_with_differences():
    for f in (changed_and_returned, elements_by_an_inner_loop, one_branch):
        h = 1e-6 * np.eye(N)[3]
        np.testing.assert_allclose(wg.grad(f)(X)[3], (f(X + h) - f(X - h)) / 2e-6, rtol=1e-5)


def test_an_attribute_of_one_branch_is_refused():
    def f(x):
        body = Body(x[0])
        if x[0] > 0:
            body.other = x[1]
        return body.other

    message = r"attribute other of a Body has a value after one of the branches only; assign it"
    with pytest.raises(TraceError, match=message + r" before, or in both.*test_objects.py"):
        wg.jit(f)(X)


def test_a_list_that_grows_in_a_branch_is_refused():
    def f(x):
        out = [[]]
        for i in range(N):
            if x[i] > 0.5:
                out[0].append(x[i])
        return sum(out[0])

    with pytest.raises(TraceError, match="list has a value after one of the branches only"):
        wg.jit(f)(X)


def test_shapes_that_change_are_refused_with_the_attribute():
    def f(x):
        body = Body(x[:2])
        while np.sum(body.position) < 50.0:
            body.position = np.append(body.position, x[0])
        return body.position[0]

    with pytest.raises(TraceError, match=r"attribute position of a Body has shape \(2,\)"):
        wg.jit(f)(X)


class Doubled:
    def __init__(self):
        self._p, self.rate = 1.0, 0.1

    @property
    def p(self):
        return self._p

    @p.setter
    def p(self, value):
        self._p = 2 * value

    def step(self, x):
        self.p = self.p * 0.4 + x
        self.p += 0.1
        return self.p

    def loop(self, x):
        for i in range(N):
            self.p = self.p * 0.4 + x * i
        if x > 0:
            self.p -= 1.0
        return self.p


@pytest.mark.parametrize("name", ["step", "loop"])
def test_setters_of_an_object_from_outside(name):
    ours, plain = Doubled(), Doubled()
    compiled = wg.jit(getattr(ours, name))
    for x in (2.0, -1.0, 0.5):
        np.testing.assert_allclose(compiled(x), getattr(plain, name)(x), rtol=1e-12)
        np.testing.assert_allclose(ours._p, plain._p, rtol=1e-12)
    gradient = wg.jit(wg.grad(getattr(Doubled(), name)))
    np.testing.assert_allclose(gradient(2.0), wg.grad(getattr(Doubled(), name))(2.0), rtol=1e-12)
