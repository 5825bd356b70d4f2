"""Tests of wengert.onnx; they are skipped where onnx or onnxruntime is not installed."""
