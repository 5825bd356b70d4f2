"""Tests of wengert.scipy.stats; distributions.py has the parameters that they are tried with."""
