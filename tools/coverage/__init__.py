"""Coverage: which functions of NumPy and SciPy there are here, and what each can do.

    spaces          the namespaces that are compared, and the public functions in them
    numpy_calls     a call of each function of numpy, to be probed with
    scipy_calls     of those of scipy that are not called as their operations are
    distributions   of the methods of distributions in scipy.stats
    calls           the calls read, and usual arguments for what has none
    probe           the facts about one function, by calling it
    reasons         why something is not there, in one place
    page            docs/coverage.md, from facts that are kept in docs/coverage.json

The page is written by docs/generate/coverage.py, and tests/test_coverage.py says when it is stale.
"""

from .page import page
from .probe import facts
from .spaces import SPACES, collected, names_of, public_names

__all__ = ["SPACES", "collected", "facts", "names_of", "page", "public_names"]
