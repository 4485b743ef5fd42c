"""Draws the letters of preview pictures anew, in a real browser: `python -m tests.browser.draw_letters`.

The build sets these pictures without a font: it copies letters out of site/letters/letters.json. Run this only to change a size, a
font or the choice of letters. The fonts are DejaVu Serif Bold and DejaVu Sans, which may be used and changed freely.
"""

from __future__ import annotations

import json

from playwright.sync_api import sync_playwright

from pipeline.render.draw.preview import LETTERS, SHADES
from tests.browser.conftest import find_browser

SETS = {"large": "bold 66px 'DejaVu Serif'", "middle": "bold 46px 'DejaVu Serif'", "text": "34px 'DejaVu Sans'"}
CHARACTERS = "".join(map(chr, range(32, 127))) + "×·–…’±−"
DRAW = """([font, characters, shades]) => {
    const canvas = document.createElement('canvas'), context = canvas.getContext('2d', { willReadFrequently: true });
    canvas.width = canvas.height = 160;
    const out = {};
    for (const character of characters) {
        context.fillStyle = '#fff'; context.fillRect(0, 0, 160, 160);
        context.fillStyle = '#000'; context.font = font; context.textBaseline = 'alphabetic';
        context.fillText(character, 40, 100);
        const { data } = context.getImageData(0, 0, 160, 160);
        const shade = (x, y) => Math.round(data[4 * (160 * y + x)] * (shades - 1) / 255);
        let left = 160, right = -1, top = 160, bottom = -1;
        for (let y = 0; y < 160; y++) for (let x = 0; x < 160; x++) if (shade(x, y) < shades - 1) {
            left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
        }
        const rows = [];
        for (let y = top; y <= bottom; y++) {
            let row = '';
            for (let x = left; x <= right; x++) row += shade(x, y).toString(16);
            rows.push(row);
        }
        out[character] = [Math.round(context.measureText(character).width), right < 0 ? 0 : left - 40, right < 0 ? 0 : top - 100, rows.join(' ')];
    }
    return out;
}"""


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-lcd-text", "--font-render-hinting=none"]
        )
        page = browser.new_page()
        drawn = {name: page.evaluate(DRAW, [font, CHARACTERS, SHADES]) for name, font in SETS.items()}
        browser.close()
    lines = [f" {json.dumps(name)}: {json.dumps(letters, ensure_ascii=False)}" for name, letters in drawn.items()]
    LETTERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
