"""What to do about operators that the graph does not have."""

from __future__ import annotations

_ADVICE = {
    ("Elu", "Selu", "Gelu", "Celu", "Softplus", "Softsign", "HardSwish", "HardSigmoid", "Mish", "Erf", "Exp", "Log"): (
        "retrain with ReLU, LeakyReLU, Sigmoid, Tanh or Clip in their place"
    ),
    ("LSTM", "GRU", "RNN", "Loop", "Scan", "If"): "unroll recurrence and control flow before the export",
    ("QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"): (
        "use the float32 network from before quantisation"
    ),
    ("ArgMax", "TopK", "Greater", "Less", "Where", "NonZero", "OneHot"): (
        "cut the network before decisions on its values and keep the logits as output"
    ),
    ("InstanceNormalization", "LayerNormalization", "GroupNormalization", "LpNormalization", "LRN"): (
        "use batch normalisation, whose statistics are constants"
    ),
    ("Softmax", "LogSoftmax"): "attention is not supported; a softmax may only be the last operator",
}


def suggestion(operators: tuple[str, ...]) -> str:
    """One sentence of advice for a set of operators."""
    advice = [text for names, text in _ADVICE.items() if set(names) & set(operators)]
    return "To do: " + ("; ".join(advice) if advice else "export the network with supported layers (docs/operators.md)")
