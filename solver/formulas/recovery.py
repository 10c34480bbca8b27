r"""After a failure: what is computed again. $L$ input tokens, $G$ outputs on record, state of $S$ tokens saved."""


def replayed_tokens(input_tokens: float, outputs: float, saved: float) -> float:
    r"""Tokens to prefill again before the last output continues: $\max(0, L + G - 1 - S)$. Section 9.6.3 (1024).

    The last output on record has no state yet: the next decode call feeds it.
    """
    return max(0.0, input_tokens + outputs - 1.0 - saved)


def recovery_seconds(detection: float, rebuild: float, replay: float) -> float:
    r"""Until a request continues: noticed, the unit made anew, tokens replayed, one after the other. Section 9.6.3."""
    return detection + rebuild + replay
