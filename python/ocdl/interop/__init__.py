"""Flows in other people's programs: PyTorch, JAX, and files in ONNX."""
