"""The first screen by its parts."""

ROW = "#window tbody:not(.misses) tr"
MISS = "#window tbody.misses tr"
GPU = "#window select[name=gpu]"


def names(page, rows=ROW):
    return page.locator(f"{rows} th > a").all_inner_texts()


def answer(page):
    return page.locator("#window .answer").inner_text()


def cells(page, name):
    return page.locator(ROW, has_text=name).locator("td.cell").all_inner_texts()
