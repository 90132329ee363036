"""What several gauges need: loss functions at other outputs, Gaussian logits, asking a module aside."""
