"""Differential equations.

explicit_tables    ExplicitTable; RK23, RK45, Tsit5
high_order_tables  DOP853, Vern7
"""
