"""Modules of published repositories, as they are, under today's Python and PyTorch.

open_repository(folder, python2) makes the modules of a working tree importable. What they expect of their time is given to
them: division of whole numbers of Python 2, GPUs that are there, options that PyTorch no longer has, and packages that
nothing of what is compared calls.
"""
import ast
import importlib.abc
import importlib.util
import pathlib
import re
import sys
import types

import torch

ABSENT = {
    "nltk", "torchtext", "tensorboard_logger", "pycocotools", "pycocoevalcap", "pyciderevalcap", "cPickle", "ruamel", "yacs", "fvcore", "iopath", "ruamel_yaml", "imageio", "cv2", "apex",
}  # packages that stand in where they are not installed


def div(a, b):
    """The division of Python 2."""
    return a // b if isinstance(a, int) and isinstance(b, int) else a / b


class Divisions(ast.NodeTransformer):
    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        call = ast.Call(ast.Name("_python2_div", ast.Load()), [node.left, node.right], [])
        return ast.copy_location(call, node)


class Loader(importlib.abc.Loader):
    def __init__(self, path, python2):
        self.path, self.python2 = path, python2

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        text = self.path.read_text(errors="replace")
        text = re.sub(r"\basync\s*=", "non_blocking=", text)  # a word of the language today
        if self.python2:
            text = re.sub(r"^(\s*)print (?!\()(.+)$", r"\1print(\2)", text, flags=re.M).expandtabs(8)
        tree = ast.parse(text, str(self.path))
        if self.python2:
            tree = ast.fix_missing_locations(Divisions().visit(tree))
        module.__dict__["_python2_div"] = div
        exec(compile(tree, str(self.path), "exec"), module.__dict__)


class Finder(importlib.abc.MetaPathFinder):
    def __init__(self, folder, python2):
        self.folder, self.python2 = folder, python2

    def find_spec(self, name, path=None, target=None):
        at = self.folder.joinpath(*name.split("."))
        if at.with_suffix(".py").is_file():
            return importlib.util.spec_from_loader(name, Loader(at.with_suffix(".py"), self.python2), origin=str(at))
        if (at / "__init__.py").is_file():
            return importlib.util.spec_from_file_location(name, at / "__init__.py", loader=Loader(at / "__init__.py", self.python2), submodule_search_locations=[str(at)])
        if at.is_dir() and any(at.glob("*.py")) and "." not in name:
            spec = importlib.util.spec_from_loader(name, None, is_package=True)
            spec.submodule_search_locations = [str(at)]
            return spec
        return None


class Absent(types.ModuleType):
    """A package that is not there: every name in it is a class that does nothing."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *a, **k: None, "__class_getitem__": classmethod(lambda cls, item: cls)})


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self, is_package=True) if name.split(".")[0] in ABSENT else None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


def open_repository(folder, python2=False):
    """Makes the modules of a working tree importable, before those of the same names elsewhere."""
    sys.meta_path.insert(0, Finder(pathlib.Path(folder), python2))
    sys.meta_path.append(AbsentFinder())
    torch.cuda.is_available = lambda: True  # losses make their masks on one alone
    torch.cuda.device_count = lambda: 1
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *a, **k: self
    torch.autograd.Variable = lambda x, volatile=False, requires_grad=False: x
    torch.nn.utils.clip_grad.clip_grad_norm = torch.nn.utils.clip_grad_norm_


def in_double():
    """Makes modules compute in float64, so that what differs is the rounding of ours."""
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = torch.Tensor.double
    return torch.float64


def function(file, name, **names):
    """A function of a script that cannot be imported, with the names that it reads."""
    finder = next(x for x in sys.meta_path if isinstance(x, Finder))
    tree = ast.parse((finder.folder / file).read_text())
    node = next(x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef) and x.name == name)
    node.decorator_list = []
    exec(compile(ast.Module([node], []), file, "exec"), names)
    return names[name]
