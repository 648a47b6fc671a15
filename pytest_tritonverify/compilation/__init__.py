"""Compiling the kernels that cases launch, for devices that this machine need not have.

Launches are recorded where the implementation runs (`recording`, `values`), and compiled in
processes of their own (`role`, `jobs`, `finding`, `offline`, `gpu`, `npu`), perhaps of another
interpreter (`toolchains`). What these tell is read with care and judged here (`launches`,
`outcomes`, `compiling`). Nothing of it decides a verdict on numbers.
"""
