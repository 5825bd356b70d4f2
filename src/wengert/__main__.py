"""`python -m wengert`: the same as the command `wengert`.

What it can do is in `wengert.cli`; here is only what `python -m` looks for.  Its exit status is
that of the command.
"""

import sys

from .cli import main

sys.exit(main())
