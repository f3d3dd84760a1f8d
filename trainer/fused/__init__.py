"""Faster stand-ins for the parts of a student's model, each used only where both agree.

What is gained where (measured; `python -m benchmarks training --profile` shows it):
- On a processor that is not Intel's, torch's matrix product (MKL) does not use AVX-512; oneDNN,
  which torch brings as well, does.
- Torch draws dropout's coin flips one by one; here one draw of 64 random bits serves four.
- The loss takes a few rows of logits at a time, which then never leave the processor's cache.
"""
