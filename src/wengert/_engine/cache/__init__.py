"""Files of the disk cache, in a directory private to the user.

disk_cache         the cache: files by checksum; the state of wengert's sources, a part of all keys
private_directory  a directory that only its owner can write to; atomic writes
"""
