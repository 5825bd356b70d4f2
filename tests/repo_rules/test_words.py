"""Words that this project no longer uses, and the words to use instead (docs/glossary.md).

WORDS has a pattern for each, which matches phrases where the word also has a standard meaning
(`os.walk`, "a list is kept").  Checked are sources, pages, examples, benchmarks, and tests with
their names.  words_allowed.json says for each folder which of them it still has; new ones cannot be
added elsewhere, and an entry that is no longer needed has to go, which

    python tests/repo_rules/test_words.py

does.
"""

import functools
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = Path(__file__).with_name("words_allowed.json")
PLACES = {"src": "*.py", "docs": "*.md", "examples": "*.py", "benchmarks": "*.py", "tools": "*.py"}
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")

_OF_DERIVATIVES = r"(?:derivatives?|gradients?|slopes?|partials?|differentia\w+|varied)"
_VARIABLE = (
    r"(?:the (?!rule|engine|user|library|same|transpose|implicit|interpreter)|its|their|his"
    r"|an? (?!rule|formula)|one (?:of|argument|operand)|each|every|any|some|both|all|whatever"
    r"|which|orders?|parameters?|points?|weights?|[a-z]\b|`\w+`)"
)
# What to use instead: strings of which one must be in a text that is searched, and the pattern.
WORDS = {
    "dispatch": ("door", r"\b(?:the|one|single|forward) door\b"),
    "the project, the engine": ("house", r"\bhouse rules?\b|\bthe house\b|\bhouse word"),
    "host callback": ("sland", r"\b[Ii]slands?\b(?!=)"),  # but for the deprecated keyword
    "pass, traversal, driver; fused loops": (
        "walk|Walk",
        r"\b(?:a|an|the|one|each|every|first|this|same|in) walks?\b|\bWalk\b",
    ),
    "pass, backward pass; loop": ("weep", r"\b[Ss]weeps?\b"),
    "subscripts": ("letters", r"\bindex letters\b|\bletters of an? (?:index|einsum|operand)"),
    "memory for": (
        "room",
        r"\b(?:has|have|with|more|little|much|its|only) room\b|\broom for\b",
    ),
    "distinguish": ("apart", r"\bt(?:old|ell|ells) apart\b"),
    "is passed, is given, is known": (
        "told",
        r"\b(?:is|are|was|were|be) told\b|\btold (?:otherwise|by|of)\b",
    ),
    "identical, the same; both": ("alike", r"\balike\b"),
    "LazyModule, lazy_names": ("Late|late_", r"\bLate\(|\blate_names\b|\bimport Late\b"),
    "rarely": ("seldom", r"\bseldom\b"),
    "stopped, ended, was lost": (
        "died",
        r"\b(?:it|gradient|cotangent|worker|process|where|one) (?:has )?died\b",
    ),
    "backward pass": ("way back", r"\bway back\b"),
    "slow path, fast path": (" way", r"\b(?:long|short|shorter|shortest|slow|slower) way\b"),
    "batch": (" rows", r"\bmany rows\b(?! as columns)|\brows at once\b|\ball rows at\b"),
    "with respect to": (" by ", rf"\b{_OF_DERIVATIVES} by {_VARIABLE}"),
    "integer": ("hole number", r"\b[Ww]hole numbers?\b"),
    "boolean": ("ruth value", r"\b[Tt]ruth values?\b"),
    "branch": ("choices", r"\b[Ll]oops (?:and|or) choices?\b|\bchoices by a\b"),
    "related functions": (" kin", r"\b(?:its|their|his|and) kin\b"),
    "is not a": (
        " is no",
        r"\b(?:which|that) is no (?!longer)"
        r"|\bis no (?:function|array|tensor|name|graph|node)\b",
    ),
    "is not one": (" none", r"\b(?:that|which|body) (?:is|are) none\b"),
    "node of the graph": (
        "ine of |ines of ",
        r"\b[Ll]ines? of (?:the|a|its|that|this) (?:graph|list)s?\b",
    ),
    "symbolic size": (
        "name",
        r"\b(?:[Ss]izes?|[Ll]engths?) (?:with|that have|has|having) (?:a )?names?\b",
    ),
    "named axes": ("xes with", r"\b[Aa]xes with names\b"),
    "fused loops": ("in step", r"\b[Ll]oops in step\b"),
    "record, trace": (
        " down",
        r"\bwr(?:ite|ites|itten|iting) (?:it |them |one |is |are )?down\b",
    ),
    "must be a string": ("ive it a word", r"[Gg]ive it a word"),
    "defined by the interpreter": ("affair", r"\baffair\b"),
    "neighbor, color, behavior (American spelling)": (
        "our",
        r"[Nn]eighbour|[Cc]olour|[Bb]ehaviour(?!s\.md)",
    ),
    "center, normalize, optimizer, generalize (American spelling)": (
        "entre|ormalise|ptimise|eneralise",
        r"\b_?[Cc]entred?s?\b|[Nn]ormalise|[Oo]ptimise|[Gg]eneralise",
    ),
}
_FRAGMENTS = {word: fragments.split("|") for word, (fragments, _) in WORDS.items()}
_PATTERNS = {word: re.compile(pattern) for word, (_, pattern) in WORDS.items()}


def folder_of(path):
    """The part of the repository that a file is counted to."""
    relative = path.relative_to(ROOT)
    if relative.as_posix().startswith("docs/benchmarks"):
        return "docs/benchmarks*"  # rendered by the files in benchmarks
    return relative.parent.as_posix() if len(relative.parts) > 1 else relative.as_posix()


@functools.cache
def texts():
    """What is checked: (folder, place, text)."""
    found = [(name, name, (ROOT / name).read_text(encoding="utf-8")) for name in PAGES]
    for top, pattern in PLACES.items():
        for path in sorted((ROOT / top).rglob(pattern)):
            text = path.read_text(encoding="utf-8")
            found.append((folder_of(path), path.relative_to(ROOT).as_posix(), text))
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8") if path != Path(__file__).resolve() else ""
        place = path.relative_to(ROOT).as_posix()
        found.append((folder_of(path), place, text))
        names = [path.stem, *re.findall(r"^def (test_\w+)", text, re.M)]
        text = "\n".join(name.replace("_", " ") for name in names)
        found.append((folder_of(path), f"names in {place}", text))
    return found


@functools.cache
def uses():
    """For each folder the words that are not to be used, with the places."""
    found = {}
    for folder, place, text in texts():
        for word, pattern in _PATTERNS.items():
            likely = any(fragment in text for fragment in _FRAGMENTS[word])
            match = pattern.search(text) if likely else None
            if match:
                line = text.count("\n", 0, match.start()) + 1
                where = f"{place}:{line}: {match[0]!r}; use {word!r}"
                found.setdefault(folder, {}).setdefault(word, []).append(where)
    return found


def allowed():
    return json.loads(ALLOWED.read_text(encoding="utf-8"))


def test_retired_words_are_not_used():
    known = allowed()
    wrong = [
        place
        for folder, words in uses().items()
        for word, places in words.items()
        if word not in known.get(folder, ())
        for place in places
    ]
    assert not wrong, "\n".join(wrong)


def test_allowances_are_needed():
    found = uses()
    needless = [
        f"{folder}: {word}"
        for folder, words in allowed().items()
        for word in words
        if word not in found.get(folder, {})
    ]
    assert not needless, f"run python {Path(__file__).relative_to(ROOT)}:\n" + "\n".join(needless)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("the one door of all operations", "dispatch"),
        ("the derivative by x", "with respect to"),
        ("differentiable by the parameters", "with respect to"),
        ("n has to be a whole number", "integer"),
        ("x, which is no function", "is not a"),
        ("a cotangent died here", "stopped, ended, was lost"),
    ],
)
def test_words_are_found(text, word):
    assert [w for w, pattern in _PATTERNS.items() if pattern.search(text)] == [word]


@pytest.mark.parametrize(
    "text",
    [
        "for folder, _, files in os.walk(path)",
        "ast.walk(tree)",
        "the derivative is found by the rule of the operation",
        "differentiated by the engine",
        "the gradient by hand",
        "there is no number",
        "np.floor(x) is kept",
    ],
)
def test_standard_meanings_are_not_found(text):
    assert not [w for w, pattern in _PATTERNS.items() if pattern.search(text)]


if __name__ == "__main__":
    kept = {
        folder: [word for word in words if word in uses().get(folder, {})]
        for folder, words in allowed().items()
    }
    lines = [f"  {json.dumps(f)}: {json.dumps(w)}" for f, w in sorted(kept.items()) if w]
    ALLOWED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
