"""Object files on disk, in a directory private to the user.

disk_cache         the cache: files by checksum; does not import LLVM
tuned_thresholds   thresholds measured on this machine (tuning.py)
object_files       from LLVM IR to an object file, through the cache
private_directory  a directory that only its owner can write to; atomic writes
"""
