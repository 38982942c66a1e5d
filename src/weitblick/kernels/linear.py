"""A linear layer as compiled functions take it: the structure `Linear` of kernels.h."""

from __future__ import annotations

from ctypes import Structure, c_int64, c_void_p

from torch import Tensor

from weitblick.kernels.library import Kernels, PackedIntegers


class LinearLayer(Structure):
    """Points into what it was made of, which the caller keeps."""

    _fields_ = (
        ("columns", c_int64),
        ("inner", c_int64),
        ("panels", c_void_p),
        ("bias", c_void_p),
        ("scale", c_void_p),
        ("shift", c_void_p),
        ("zero", c_int64),
    )


def integer_layer(packed: PackedIntegers) -> LinearLayer:
    scale, shift, bias = packed.scale.data_ptr(), packed.shift.data_ptr(), packed.bias.data_ptr()
    return LinearLayer(packed.columns, packed.inner, packed.panels.data_ptr(), bias, scale, shift, packed.zero)


def float_layer(kernels: Kernels, weight: Tensor, bias: Tensor | None) -> LinearLayer:
    """The weight keeps what is made of it here."""
    packed = kernels.packed(weight)
    bias_at = None if bias is None else bias.data_ptr()
    return LinearLayer(packed.columns, packed.inner, packed.panels.data_ptr(), bias_at, None, None, 0)
