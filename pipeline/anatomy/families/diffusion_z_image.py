"""Z-Image: one stream over image and text, after refiners for each. Source: diffusers 0.42.1, models/transformers/transformer_z_image.py.

The class takes `n_kv_heads` and uses as many heads for keys and values as for queries.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.families.diffusion import denoiser, finish
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig
from pipeline.anatomy.towers.part import Part

MODULATION = 256  # elements of a timestep that modulate a layer, at most (ADALN_EMBED_DIM); its sinusoids have as many
TIME = 1024


@family("ZImageTransformer2DModel")
def read_z_image(fields: Fields) -> Anatomy:
    hidden, heads = fields.count("dim", default=3840), fields.count("n_heads", default=30)
    layers, refiners = fields.repeats("n_layers", default=30), fields.repeats("n_refiner_layers", default=2)
    inputs, part, time = fields.count("in_channels", default=16), denoiser(), min(hidden, MODULATION)
    fields.count("n_kv_heads", default=30)
    patches, frames = sizes(fields, "all_patch_size", (2,), least=1), sizes(fields, "all_f_patch_size", (1,), least=1)
    if len(patches) != len(frames):
        raise ContradictoryConfig(f"{fields.where} has {len(patches)} sizes of patches, and {len(frames)} of frames")
    for patch, frame in sorted(set(zip(patches, frames, strict=True))):
        pixels = frame * patch * patch * inputs
        part.linear("patch_embedding", pixels, hidden)
        part.linear("modulation", time, hidden)
        part.linear("patch_output", hidden, pixels)
    part.linear("time_embedding", MODULATION, TIME)
    part.linear("time_embedding", TIME, time)
    kinds = (
        1 + _features(part, fields, hidden, "cap_feat_dim", 2560) + _features(part, fields, hidden, "siglip_feat_dim")
    )
    part.parameter(kinds * hidden, "padding_embedding")
    every = layers + kinds * refiners
    head_dim = hidden // heads
    for each in (layers, *[refiners] * kinds):  # those of a stream that refine it stand apart: packers leave them alone
        part.mixer(each, hidden, heads, head_dim=head_dim, bias=False)
        part.norm(head_dim if fields.flag("qk_norm", default=True) else 0, layers=each, count=2, bias=False)
        part.mlp(each, hidden, int(hidden / 3 * 8), gated=True, bias=False)
        part.norm(hidden, layers=each, count=4, bias=False)
    for each in (layers, refiners):  # of noise, not of text
        part.linear("modulation", time, 4 * hidden, layers=each)
    return finish(fields, part, hidden, every)


def _features(part: Part, fields: Fields, hidden: int, name: str, default: int | None = None) -> int:
    """What else the stream reads: a norm and a matrix from its width, which Z-Image's pictures as input leave out. 1 where it is there."""
    width = fields.count(name, default=default)
    if width is None:
        return 0
    part.norm(width, bias=False)
    part.linear("context_embedding", width, hidden)
    return 1
