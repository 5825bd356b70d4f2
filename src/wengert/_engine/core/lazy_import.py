"""Lazy imports: modules that are imported at the first use of something in them.

Visualization, serialization, diagnostics and other backends would be a third of the imports of a
first call of `wengert.jit`, which uses none of them.

    LazyModule     a module that is imported at the first use of an attribute
    public_dir     a module's `__dir__`: its public names
    exported       the public names of some modules of a package
    lazy_names     a package's `__getattr__`, for names defined in its modules
    PublicModule   a public name for a module defined elsewhere; CallableModule: a callable one
    ModuleDocstring  its `__doc__`
    STARTED        the time of import: source files changed later differ from the running code
    FAMILIES       modules that register operations and that `import wengert` does not import
    load_families  import them, until an operation that was looked for is registered
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import resolve_name
from types import ModuleType
from typing import Any

from .extra_packages import is_missing

STARTED = time.time_ns()
FAMILIES: list[str] = []  # full names, added by wengert/__init__.py


# Names that `dir` shows for every module beside its public names.
DUNDERS = ("__all__", "__doc__", "__file__", "__name__", "__package__", "__path__", "__spec__")


def public_dir(module: str, *more: str) -> Callable[[], list[str]]:
    """A module's `__dir__`: the names in `__all__`, and the submodules given here.

    Parameters
    ----------
    module : str
        Its `__name__`.
    *more : str
    """
    return lambda: sorted({*sys.modules[module].__all__, *more, *DUNDERS})


def exported(package: str, modules: str) -> list[str]:
    """The public names of some modules of a package, as star imports define them.

    A package sets ``globals()["__all__"] = exported(...)``: type checkers do not see this `__all__`
    and take the names from the star imports.

    Parameters
    ----------
    package : str
        Its `__name__`.
    modules : str
        Their names in the package, separated by spaces; they must have been imported.
    """
    return [n for module in modules.split() for n in sys.modules[f"{package}.{module}"].__all__]


class LazyModule:
    """A module that is imported at the first use of an attribute.

    Parameters
    ----------
    name : str
        Its full name.

    Examples
    --------
    >>> LazyModule("wengert._engine.core.pytree").flatten((1, 2))[0]
    [1, 2]
    """

    __slots__ = ("_module", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, attribute)

    def __repr__(self) -> str:
        return f"<LazyModule {self._name}>"


def lazy_names(package: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`, which imports the module that defines a name.

    Parameters
    ----------
    package : str
        Its `__name__`.
    where : mapping from str to str
        The module that defines each name, relative to the package: ``".save_load"``. A name must
        not be that of a module in the package, whose import would replace it. Names of packages
        that are not installed are removed from the package's ``__all__``, so that star imports
        and `help` work; looking them up is an error that says how to install them.

    Returns
    -------
    callable
    """
    listed = getattr(sys.modules.get(package), "__all__", [])
    for name, module in where.items():
        if name in listed and is_missing(resolve_name(module, package)):
            listed.remove(name)

    def __getattr__(name: str) -> Any:
        if name in where:
            return getattr(import_module(where[name], package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__


class ModuleDocstring:
    """The `__doc__` of a `PublicModule`: that of the module itself, which it imports.

    Parameters
    ----------
    of_class : str
        The docstring of the class.
    """

    def __init__(self, of_class: str) -> None:
        self.of_class = of_class

    def __get__(self, module: PublicModule | None, cls: type[PublicModule]) -> str | None:
        return self.of_class if module is None else module._itself().__doc__

    def __set__(self, module: PublicModule, text: str) -> None:
        module._itself().__doc__ = text


class PublicModule(ModuleType):
    """A public name for a module defined elsewhere, which is imported at first use.

    It has no ``__path__``, so that its submodules cannot be imported a second time by another name.

    Parameters
    ----------
    name : str
        The public full name.
    target : str
        The full name of the module itself.
    also : mapping from str to str
        The modules of names that are defined elsewhere.
    """

    __doc__: Any = ModuleDocstring(__doc__)

    def __init__(self, name: str, target: str, also: Mapping[str, str]) -> None:
        super().__init__(name)
        self.__dict__.update(_target=target, _also=dict(also))

    def _itself(self) -> ModuleType:
        return import_module(self.__dict__["_target"])

    def __getattr__(self, attribute: str) -> Any:
        if attribute in ("__path__", "__file__", "__wrapped__"):
            raise AttributeError(attribute)
        if attribute == "__all__":
            return sorted({*self._itself().__all__, *self.__dict__["_also"]})
        if attribute in self.__dict__["_also"]:
            return getattr(import_module(self.__dict__["_also"][attribute]), attribute)
        try:
            return getattr(self._itself(), attribute)
        except AttributeError:
            if (submodule := sys.modules.get(f"{self.__name__}.{attribute}")) is not None:
                return submodule
            message = f"module {self.__name__!r} has no attribute {attribute!r}"
            raise AttributeError(message, name=attribute, obj=self) from None

    def __setattr__(self, attribute: str, value: Any) -> None:
        setattr(self._itself(), attribute, value)

    def __delattr__(self, attribute: str) -> None:
        delattr(self._itself(), attribute)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._itself()), *self.__dict__["_also"]})

    def __reduce__(self) -> Any:
        return import_module, (self.__name__,)


class CallableModule(PublicModule):
    """A callable module, such as `wengert.debug`: ``wengert.debug(nan=True)``."""

    __doc__: Any = ModuleDocstring(__doc__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module itself."""
        module: Any = self._itself()
        return module(*args, **kwargs)


def load_families(is_found: Callable[[], bool] | None = None, package: str = "") -> bool:
    """Import the modules in FAMILIES; return False if all were imported already.

    Parameters
    ----------
    is_found : callable, optional
        Whether what is looked for is there: after the module that has it no other is imported.
    package : str
        The last part of the name of the package that is imported first: ``"special"``.
    """
    missing = [name for name in FAMILIES if name not in sys.modules]
    for name in sorted(missing, key=lambda name: name.rpartition(".")[2] != package):
        import_module(name)
        if is_found is not None and is_found():
            break
    return bool(missing)
