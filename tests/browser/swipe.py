"""A finger on a page, as Chromium hears it."""

from __future__ import annotations

STEPS = 20


def swipe(page, x: float, y: float, far: float) -> None:
    """From (x, y) upwards by so many pixels, held at the end, so that nothing is flung."""
    touch = page.context.new_cdp_session(page)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, STEPS + 1):
        point = {"x": x, "y": y - far * step / STEPS}
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
        page.wait_for_timeout(16)
    page.wait_for_timeout(150)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
