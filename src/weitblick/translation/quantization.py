"""8-bit integer linear layers for the CPU. The output vocabulary layer, which chooses words, stays float."""

from __future__ import annotations

import warnings

import torch
from torch import nn

from weitblick.errors import UserError
from weitblick.model.document_model import DocumentModel


def quantize_linears(model: DocumentModel) -> DocumentModel:
    """A copy whose linear layers multiply 8-bit integers. Inputs are scaled by the range of all rows of a batch, so
    that the result for a sentence depends on its batch: the one thing here that is exempt from batch invariance."""
    if next(model.parameters()).device.type != "cpu":
        raise UserError("8-bit linear layers run on the CPU only", remedy="use --device cpu, or leave --int8 out")
    if torch.backends.quantized.engine == "none":
        raise UserError("this PyTorch has no 8-bit kernels for this processor", remedy="leave --int8 out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", UserWarning)
        quantized = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    quantized.pointer = model.pointer  # small, and the keys of approved translations outlive this process
    return quantized.eval()
