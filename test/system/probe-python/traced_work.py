"""Functions to trace."""

import functools


def plain(n):
    return n + 1


def outer(n):
    return plain(n) + 1


def recursive(n):
    return 0 if n == 0 else 1 + recursive(n - 1)


def failing():
    raise ValueError("as it should")


def through():
    """An exception leaves two traced functions at once."""
    failing()


def counting(n):
    yield from range(n)


def shared(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@shared
def decorated(n):
    return n


@shared
def untraced(n):
    return n


class Thing:
    def method(self):
        return 7

    @staticmethod
    def static():
        return 8

    @classmethod
    def of_class(cls):
        return 9
