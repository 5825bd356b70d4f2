"""Tests of native code."""
