"""Optional compiled kernels for decoding on the CPU. Without them everything runs on PyTorch alone.

    python -m weitblick.kernels        builds them for this processor, once, with the C compiler that is there
    WEITBLICK_KERNELS=off              leaves them out

They compute in float32 what PyTorch would, in another order of sums: results agree to a few units in the last place.
"""
