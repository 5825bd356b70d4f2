"""Functions and layers for 1, 2 and 3 dimensions from one definition: names, signatures, docs."""

import inspect
import pickle

import pytest

import wengert.nn.functional as F
from wengert import nn

FUNCTIONS = """conv conv_transpose max_pool avg_pool adaptive_max_pool adaptive_avg_pool dropout
max_unpool lp_pool"""
LAYERS = """Conv ConvTranspose MaxPool AvgPool AdaptiveMaxPool AdaptiveAvgPool MaxUnpool LPPool
ZeroPad ConstantPad ReflectionPad ReplicationPad CircularPad"""


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("name", FUNCTIONS.split())
def test_a_function_of_each_dimension(name, axes):
    function = getattr(F, f"{name}{axes}d")
    assert function.__name__ == function.__qualname__ == f"{name}{axes}d"
    assert function.__doc__ and "<" not in function.__doc__
    assert next(iter(inspect.signature(function).parameters)) == "x"
    assert "x" in function.__annotations__ and "op_name" not in function.__annotations__
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("name", LAYERS.split())
def test_a_layer_of_each_dimension(name, axes):
    layer = getattr(nn, f"{name}{axes}d")
    assert layer.axes == axes
    assert "Parameters\n" in layer.__doc__ and f"nn.{name}{axes}d(" in layer.__doc__
    assert "<n>" not in layer.__doc__


def test_a_subclass_of_a_users_keeps_its_docstring():
    class Own(nn.Conv2d):
        """Mine."""

    class Deeper(nn.Conv2d):
        """Mine, too."""

        axes = 2

    assert (Own.__doc__, Deeper.__doc__) == ("Mine.", "Mine, too.")
