"""Derivatives: sweeps over a Wengert list, and the transformations users call."""
