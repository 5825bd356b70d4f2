"""Optimal power flow: networks, and the program of the AC equations for each library.

network        a network, from a MATPOWER file or generated
model          the program as functions of NumPy arrays, for wengert
casadi_model   the same in CasADi's symbols
"""
