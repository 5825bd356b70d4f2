"""Tests of loops and choices."""
