"""The published inputs, C by hand and peer libraries: one module for each eval.

What a module must have is said in the package's map.

    hello, llsq, lse, det, kmeans, gmm, ode, ba, ht, lstm, particle, saddle
"""
