"""What a diffusion pipeline is made of: its denoiser, and the text encoders and autoencoder whose configs stand beside it.

Each component is counted by the family that reads its config. A pipeline that keeps all of them on the card needs their sum; one that
moves them there in turn (`enable_model_cpu_offload`) never more than the largest at a time. Activations come on top.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.anatomy.families import reader_for
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.anatomy.towers import Part, sizes

_NOT_RECORDED = "the snapshot does not record the config of this component"

_ENCODERS = ("text_encoder", "image_encoder", "transformer_")  # a second denoiser has no config of its own here


@dataclass(frozen=True)
class Component:
    """One model of a pipeline; `parameter_count` is None where a reason says why."""

    pipeline_part: str  # denoiser, text_encoder, text_encoder_2, vae ... as the pipeline names it
    class_name: str | None
    parameter_count: int | None
    unknown_reason: str | None = None


def components(fields: Fields, anatomy: Anatomy) -> list[Component]:
    """Of a denoiser's config; nothing of any other model."""
    if not any(t.component == "denoiser" for t in anatomy.tensors):
        return []
    parts = [Component("denoiser", anatomy.architecture or anatomy.model_type, anatomy.parameter_count)]
    encoders = fields.inner("text_encoder_configs") or Fields({})
    named = {n for n in {*fields.config, *encoders.config} if n.startswith(_ENCODERS) and n != "text_encoder_configs"}
    named = sorted(n for n in named if encoders.raw(n) is not None or _class(fields, n))
    parts += [_counted(name, encoders.raw(name), _class(fields, name)) for name in named]
    if not named:
        parts.append(Component("text_encoder", None, None, _NOT_RECORDED))
    parts.append(_counted("vae", fields.raw("_vae_config"), _class(fields, "vae")))
    return parts


def _class(fields: Fields, name: str) -> str | None:
    """['transformers', 'T5EncoderModel'] in a pipeline's index."""
    value = fields.raw(name)
    return value[1] if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str) else None


def _counted(name: str, config: object, class_name: str | None) -> Component:
    if not isinstance(config, dict):
        return Component(name, class_name, None, _NOT_RECORDED)
    fields = Fields(config, name)
    try:
        if name == "vae":
            return Component(name, class_name, autoencoder(fields).element_count)
        kind = fields.text("model_type")
        reader = reader_for(kind) if kind else None
        if reader is None:
            raise UnknownAnatomy(f"architecture '{str(kind)[:60]}' is not described yet")
        return Component(name, class_name, reader(fields).parameter_count)
    except (UnknownAnatomy, ContradictoryConfig) as reason:
        return Component(name, class_name, None, str(reason))


def autoencoder(fields: Fields) -> Part:
    """AutoencoderKL of Stable Diffusion and FLUX: residual blocks that halve and double the image, attention in the middle."""
    kind = fields.text("_class_name")
    if kind != "AutoencoderKL":
        raise UnknownAnatomy(f"autoencoder '{str(kind)[:60]}' is not described yet")
    widths, each = sizes(fields, "block_out_channels", least=1), fields.count("layers_per_block", default=2)
    latent, image = fields.count("latent_channels"), fields.count("in_channels", default=3)
    part = Part("vae", "other")
    part.conv(widths[0], image, 3, 3)
    for before, width, last in zip([widths[0], *widths], widths, [False] * (len(widths) - 1) + [True], strict=False):
        for block in range(each):
            _residual(part, width if block else before, width)
        if not last:
            part.conv(width, width, 3, 3)
    for first in (widths[-1], latent):
        if first == latent:
            part.conv(widths[-1], latent, 3, 3)
        _residual(part, widths[-1], widths[-1])
        _residual(part, widths[-1], widths[-1])
        if fields.flag("mid_block_add_attention", default=True):
            part.norm(widths[-1])
            part.linear("attention", widths[-1], widths[-1], count=4)
        if first != latent:
            part.norm(widths[-1])
            part.conv(2 * latent, widths[-1], 3, 3)
    rising = widths[::-1]
    for before, width, last in zip([rising[0], *rising], rising, [False] * (len(rising) - 1) + [True], strict=False):
        for block in range(each + 1):
            _residual(part, width if block else before, width)
        if not last:
            part.conv(width, width, 3, 3)
    part.norm(widths[0])
    part.conv(image, widths[0], 3, 3)
    if fields.flag("use_quant_conv", default=True):
        part.conv(2 * latent, 2 * latent, 1, 1)
    if fields.flag("use_post_quant_conv", default=True):
        part.conv(latent, latent, 1, 1)
    return part


def _residual(part: Part, inputs: int, outputs: int) -> None:
    """Two norms and two convolutions, and a third where the width changes."""
    part.norm(inputs)
    part.conv(outputs, inputs, 3, 3)
    part.norm(outputs)
    part.conv(outputs, outputs, 3, 3)
    if inputs != outputs:
        part.conv(outputs, inputs, 1, 1)
