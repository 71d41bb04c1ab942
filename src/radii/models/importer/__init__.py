"""From ONNX nodes to graph nodes: one small handler an operator, in tables by theme."""
