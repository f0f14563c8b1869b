"""Flows in other libraries: PyTorch, JAX, and files in ONNX."""
