"""Machine code in the disk cache (_engine/cache).

tuned_thresholds   thresholds measured on this machine (tuning.py)
object_files       from LLVM IR to an object file, through the cache
"""
