"""Samplers that call C functions: nutpie and walnutpie, with results in ArviZ.

    posterior     Posterior: a log-density of constrained parameters, compiled for samplers
    nutpie_model  a model of nutpie from two C functions; nutpie, walnutpie and ArviZ, imported at
                  first use

No Python runs while they sample, except for the initial points of nutpie.
"""

from wengert._engine.core.lazy_import import public_dir

from .posterior import Posterior

__all__ = ["Posterior"]

__dir__ = public_dir(__name__)
