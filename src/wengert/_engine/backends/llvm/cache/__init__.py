"""Object files on disk, in a directory private to the user.

disk_cache         object files on disk; without LLVM
object_files       text to object file, by way of the cache
private_directory  a folder that nobody else can write to
"""
