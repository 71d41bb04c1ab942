"""Engine: our branch and bound. Nothing outside knows its inside; `native.Native` is the verifier."""
