"""Fast doubles of what `model` defines: packed context attention, compiled kernels, 8 bits, shortlists.

The same tensors come in and, within rounding, the same tensors go out as from the definitions. `doubles` and
`compiled_doubles` are the tables of which double computes when; `build` compiles the kernels, `kernels` loads them and
checks what they are given. It imports `model`.
"""

from __future__ import annotations

from weitblick.fast.build import build_in_background


def register_doubles() -> None:
    """Registers the doubles, for every model that is built or loaded. Which kernels there are is decided here, once for
    the whole process: what is built in the background is for those that start later."""
    from weitblick.fast import doubles  # noqa: F401 (importing registers)
    from weitblick.fast.kernels import kernels

    if kernels() is None:
        build_in_background()
    else:
        from weitblick.fast import compiled_doubles  # noqa: F401 (importing registers)
