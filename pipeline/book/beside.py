"""What is said of a model that a card and the computer's memory hold together, in the terminal and in the calculator: one wording for both."""

from __future__ import annotations

# programs that share a model with the CPU as llama.cpp does it
RUN_IT = ("llama.cpp", "ollama", "lm-studio", "koboldcpp")
PARTS = {
    "experts": "the experts of {experts} of {blocks} layers",
    "layers": "{rest} of {whole} layers",
}  # what lies in RAM
FLAGS = {"experts": "-ngl 99 --n-cpu-moe {experts}", "layers": "-ngl {layers}"}
TOLD = {  # the same in the words of a program that has its own
    "ollama": {"experts": "as Ollama does by itself", "layers": "as Ollama does by itself"},
    "koboldcpp": {"experts": "--gpulayers 99 --moecpu {experts}", "layers": "--gpulayers {layers}"},
    "lm-studio": {
        "experts": "experts of {experts} layers forced to the CPU in its loader",
        "layers": "GPU offload {layers} in its loader",
    },
}
HELD = (
    "Yes, with {part} in RAM: {model} can run on {where} in {format} (llama.cpp) {at}: {on_card} GiB on {which}, {in_ram} of {ram} GiB of RAM "
    "({told}). Slower than what the card holds whole."
)
NOT_HELD = (
    "Nor does it with {ram} GiB of RAM: {format} would leave {in_ram} GiB there, and {system} GiB are the system's."
)
WORDS = {"programs": RUN_IT, "parts": PARTS, "flags": FLAGS, "told": TOLD, "held": HELD, "not_held": NOT_HELD}
