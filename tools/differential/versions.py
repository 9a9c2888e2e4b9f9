"""Prints the versions of the programs that are compared with."""
import importlib.metadata as m
import sys

for name in sys.argv[1:]:
    try:
        print(name, m.version(name))
    except m.PackageNotFoundError:
        print(name, "is not installed")
