"""Tests of loops and branches."""
