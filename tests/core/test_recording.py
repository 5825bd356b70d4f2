"""no_grad and enable_grad: blocks, decorators, generators, exceptions, threads."""

import threading

import pytest

import wengert as wg


@pytest.fixture
def x():
    return wg.tensor(2.0, requires_grad=True)


def test_blocks_nest(x):
    with wg.no_grad():
        assert not wg.is_recording()
        with wg.enable_grad():
            assert (x * 2.0).requires_grad
        assert not (x * 2.0).requires_grad
    assert (x * 2.0).requires_grad


def test_decorators(x):
    @wg.no_grad()
    def f():
        return x * 2.0

    assert not f().requires_grad and wg.is_recording()
    assert not f().requires_grad


def test_a_decorated_generator_pauses_only_its_own_code(x):
    @wg.no_grad()
    def items():
        for _ in range(3):
            yield x * 2.0
        return "done"

    for item in items():
        assert not item.requires_grad
        assert wg.is_recording() and (x * 2.0).requires_grad


def test_exceptions_and_interrupts_restore(x):
    for error in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error), wg.no_grad():
            raise error
        assert wg.is_recording()


def test_threads_have_their_own_state(x):
    seen = []
    with wg.no_grad():
        t = threading.Thread(target=lambda: seen.append((x * 2.0).requires_grad))
        t.start()
        t.join()
    assert seen == [True]


def test_one_switch_object_is_reusable(x):
    off = wg.no_grad()
    for _ in range(2):
        with off:
            assert not (x * 1.0).requires_grad
        assert (x * 1.0).requires_grad
