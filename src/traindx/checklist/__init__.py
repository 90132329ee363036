"""The checklist before a result is believed: twenty items, each ticked by evidence, failed by evidence, or not done."""
