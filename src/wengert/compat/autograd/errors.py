"""Errors that are also those which autograd raises.

NotRealError   a TypeError: a gradient of something that is not one real number
NoRuleError    a NotImplementedError: a primitive without a derivative rule
"""

from ...errors import NotDifferentiableError, NotScalarError

__all__ = ["NoRuleError", "NotRealError"]


class NotRealError(NotScalarError, TypeError):
    """A gradient was asked of something that is not one real number."""


class NoRuleError(NotDifferentiableError, NotImplementedError):
    """A primitive has no derivative rule."""
