r"""The encoder of images: its parameters, the work on one image, the features that it gives.

Every patch of an image sees all others, so attention is over $p^2$ pairs.
"""


def encoder_layer_parameters(layers: int, hidden: int, intermediate: int, gated: bool) -> float:
    r"""Matrix parameters of all layers: $L (4 h^2 + k h f)$, $k = 3$ with a gate, else 2. Units: parameters.

    Source: model configuration. Qwen2-VL-7B: 629 145 600.
    """
    return layers * (4.0 * hidden * hidden + (3.0 if gated else 2.0) * hidden * intermediate)


def image_flops(
    patches: float, tokens: float, layers: int, hidden: int, layer_params: float, other_params: float
) -> float:
    r"""Work on one image: $2 p W_l + 4 L h p^2 + 2 n W_o$; what is beside the layers once for each of $n$ features.

    Units: FLOP. Source: section 9.1.3 (stage E), by the accounting of section 9.2.3.
    """
    return 2.0 * patches * layer_params + 4.0 * layers * hidden * patches * patches + 2.0 * tokens * other_params


def feature_bytes(tokens: float, hidden: int, element_bytes: float) -> float:
    r"""Features of one image: $b\,n\,h$, $h$ the width of the language model. Units: bytes."""
    return element_bytes * tokens * hidden


def missed_images(images: float, hits: float) -> float:
    r"""Images of a request that have to be encoded: $m (1 - q)$, $q$ the share found in the cache. Section 9.7.1."""
    return images * (1.0 - hits)
