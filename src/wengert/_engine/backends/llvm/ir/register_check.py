"""Machine code that names a register which its instruction cannot address: a bug of LLVM 22.

On processors with AVX-512 LLVM replaces VPMOVB2M, VPMOVD2M and VPMOVQ2M, followed by KMOV, by
VPMOVMSKB, VMOVMSKPS and VMOVMSKPD, also if the operand is one of the registers 16 to 31, which
these instructions do not have (llvm/llvm-project#191304).  The code then reads another register: a
wrong value.  The encoding has a bit of the number of the register where these instructions have a
constant bit, so that the bytes are recognized.

    has_wrong_register    whether an object file contains such an instruction
"""

from __future__ import annotations

import re

from .object_symbols import code_of

# The prefix of three bytes (Intel's manual, volume 2, section 2.3.5) with the bit X inverted, which
# only memory operands use; the operation codes of MOVMSKPS and MOVMSKPD, and of PMOVMSKB; two
# registers.
_WRONG = re.compile(
    rb"\xc4[\x01\x21\x81\xa1][\x78\x79\x7c\x7d\xf8\xf9\xfc\xfd][\x50\xd7][\xc0-\xff]", re.DOTALL
)


def has_wrong_register(image: bytes) -> bool:
    """Whether an object file for x86-64 contains such an instruction.

    A constant in an instruction rarely looks like one.
    """
    return _WRONG.search(code_of(image)) is not None
