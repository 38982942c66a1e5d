"""Optional compiled kernels for decoding on the CPU. Without them everything runs on PyTorch alone.

    python -m weitblick.kernels        builds them for this processor, once, with the C compiler that is there
    WEITBLICK_KERNELS=off              leaves them out
    WEITBLICK_KERNELS=avx2             builds, and uses, those of a processor without AVX-512 and VNNI

They compute in float32 what PyTorch would, in another order of sums: results agree to a few units in the last place.
"""
