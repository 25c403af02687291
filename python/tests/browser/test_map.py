"""The page of a latent space, by mouse, by touch and by keys."""

import csv
import io
import time

import numpy as np
import pytest
from conftest import SIZES

#: What is decoded is on the screen when this is true.
DECODED = "document.querySelector('.facts b') !== null"


def ready(visit, digits, size, more=""):
    page = visit(digits[0] + more, size)
    page.wait("document.querySelectorAll('.legend button').length > 5")
    return page


def place(page, x, y):
    """Pixels of a part of the map."""
    left, top, width, height = page.box(".over")
    return left + 52 + x * (width - 64), top + 12 + y * (height - 50)


def hover(page, x, y):
    px, py = place(page, x, y)
    if page.size[0] < 600:
        page.tap_at(px, py)
    else:
        page.mouse("mouseMoved", px, py)
    page.wait(DECODED)


def pin(page, x, y):
    count = page.eval("document.querySelectorAll('.pin').length")
    px, py = place(page, x, y)
    (page.tap_at if page.size[0] < 600 else page.click_at)(px, py)
    page.wait(f"document.querySelectorAll('.pin').length === {count + 1}")


@pytest.mark.parametrize("size", SIZES)
def test_the_pointer_decodes_pins_and_plays(visit, digits, size, shots):
    page = ready(visit, digits, size)
    hover(page, 0.4, 0.5)
    first = page.eval("document.querySelector('.pictures canvas').toDataURL()")
    hover(page, 0.75, 0.3)
    page.wait(f"document.querySelector('.pictures canvas').toDataURL() !== '{first}'")
    if size[0] < 600:  # a tap pins, too
        page.press("Clear")
        page.wait("document.querySelectorAll('.pin').length === 0")
    pin(page, 0.2, 0.35)
    pin(page, 0.8, 0.7)
    page.wait("document.querySelectorAll('.strip').length === 2", 40)
    text = page.eval("document.body.innerText")
    assert "Straight line: mean deviation" in text and "Low variance: mean deviation" in text
    page.press("▶ Play")
    slider = "Number(document.querySelector('input[aria-label=\"place on the path\"]').value)"
    page.wait(f"{slider} > 3")
    page.press("❚❚ Pause")
    page.press("Straight line")
    page.wait("document.querySelectorAll('.strip').length === 2")
    for look in ("Table", "Curve", "Image"):
        page.press(look)
    page.shot(shots / f"latent-{size[0]}.png", full=size[0] < 600)


@pytest.mark.parametrize("size", SIZES)
def test_colours_filters_search_and_layers(visit, digits, size, shots):
    page = ready(visit, digits, size)
    for value in ("words:scan", "uncertainty", "outlier", "extra:ink <b>", "data:x5", "none", "words:digit"):
        if page.eval(f"[...document.querySelectorAll('option')].some((o) => o.value === {value!r})"):
            page.choose("Colour", value)
            page.wait("document.querySelector('.legend')")
    page.choose("Colour", "outlier")
    page.wait("document.querySelector('.legend .scale')")
    page.eval("(() => { const s = document.querySelectorAll('.ranges input')[0]; s.value = 500; s.dispatchEvent(new Event('input')); })()")
    page.wait("/of 360 shown/.test(document.querySelector('.search').textContent)")
    page.choose("Colour", page.eval("document.querySelectorAll('.colour option')[1].value"))
    page.wait("document.querySelectorAll('.legend button').length > 5")
    page.click(".legend button")
    page.wait("/of 360 shown/.test(document.querySelector('.search').textContent)")
    page.press("all")
    page.type("input[type=search]", "scan 17")
    page.wait("/11 found/.test(document.querySelector('.search').textContent)")
    page.key("Enter")
    page.wait("/row 18\\b/.test(document.querySelector('.side').innerText)")
    for chip in ("Ellipses", "Uncertain ground", "Inducing inputs"):
        page.press(chip)
    page.wait("document.querySelector('.plot').dataset.ground === 'drawn'", 30)
    page.wait("/ellipses=1/.test(location.hash) && /ground=1/.test(location.hash) && /inducing=1/.test(location.hash)")
    page.shot(shots / f"layers-{size[0]}.png")


@pytest.mark.parametrize("size", SIZES)
def test_moving_and_zooming(visit, digits, size):
    page = ready(visit, digits, size)
    x, y = place(page, 0.5, 0.5)
    if size[0] < 600:
        page.press("+")
        touch = lambda kind, *points: page.call(  # noqa: E731
            "Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": a, "y": b, "id": k} for k, (a, b) in enumerate(points)]
        )
        touch("touchStart", (x - 20, y), (x + 20, y))
        for k in range(1, 6):
            touch("touchMove", (x - 20 - 10 * k, y), (x + 20 + 10 * k, y))
        touch("touchEnd")
    else:
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300)
        page.drag([(x, y), (x + 40, y + 10), (x + 90, y + 40)])
    page.wait("/zoom=/.test(location.hash) && /cx=/.test(location.hash)")
    view = page.eval("location.hash")
    again = visit(digits[0] + view, size)
    again.wait("document.querySelectorAll('.legend button').length > 5")
    assert again.eval("location.hash") == view
    again.press("⤢")
    again.wait("!/zoom=/.test(location.hash)")


@pytest.mark.parametrize("size", SIZES)
def test_selected_rows_are_saved(visit, digits, size):
    page = ready(visit, digits, size)
    page.press("Lasso")
    corners = [place(page, x, y) for x, y in [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.05)]]
    if size[0] < 600:
        page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[dict(zip("xy", corners[0]))])
        for corner in corners[1:]:
            page.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=[dict(zip("xy", corner))])
        page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    else:
        page.drag(corners)
    page.wait("/rows selected/.test(document.body.innerText)")
    page.press("Save as CSV")
    rows = list(csv.DictReader(io.StringIO(page.downloaded("rows.csv").decode())))
    assert len(rows) > 300
    _, model, data = digits
    at = {int(r["row"]): r for r in rows}
    one = next(i for i in at if i > 10)
    assert np.allclose([float(at[one][f"x{j}"]) for j in range(64)], data[one], atol=1e-4)
    assert np.allclose([float(at[one]["latent1"]), float(at[one]["latent2"])], model.transform(data[[one]])[0], atol=1e-3)
    page.press("Clear") if size[0] > 600 else None


@pytest.mark.parametrize("size", SIZES)
def test_new_rows_are_placed_and_filled(visit, digits, size, shots):
    page = ready(visit, digits, size)
    data = digits[2]
    rows = [["" if (i, j) == (1, 20) else f"{v:g}" for j, v in enumerate(data[400 + i])] for i in range(3)]
    rows.append(["0" if j % 2 else "16" for j in range(64)])
    page.drop("<b>new.csv", "\n".join(",".join(row) for row in rows) + "\n")
    page.wait("/4 rows of <b>new.csv/.test(document.body.innerText)", 60)
    scores = page.eval("[...document.querySelectorAll('.list .soft')].map((e) => e.innerText).filter((t) => /^score/.test(t)).map((t) => Number(t.split(' ')[1]))")
    assert len(scores) == 4 and scores[3] > 2 * max(scores[:3])
    assert "1 filled" in page.eval("document.body.innerText")
    page.eval("[...document.querySelectorAll('.list button')].filter((b) => /score/.test(b.innerText))[1].click()")
    page.wait("document.querySelectorAll('.values .filled').length === 1")
    page.shot(shots / f"placed-{size[0]}.png")
    page.drop("bad.csv", "a,b\n1,2\n")
    page.wait("document.querySelector('.warning[role=alert]')")
    assert "64" in page.eval("document.querySelector('.warning[role=alert]').innerText")
    # The browser itself tells of an answer that is a refusal.
    page.complaints[:] = [c for c in page.complaints if "status of 400" not in c]


def test_everything_is_reached_by_keys(visit, digits):
    page = ready(visit, digits, (1280, 800))
    page.key("m", text="m")
    assert page.eval("document.activeElement.className") == "over"
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        page.key(key)
    page.wait(DECODED)
    page.key("Enter")
    page.wait("document.querySelectorAll('.pin').length === 1")
    for _ in range(25):
        page.key("ArrowLeft")
    page.key("Enter")
    page.wait("document.querySelectorAll('.pin').length === 2")
    page.key("+")
    page.wait("/zoom=1.3/.test(location.hash)")
    page.key("0")
    page.wait("!/zoom/.test(location.hash)")
    page.key("l")
    assert page.eval("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Lasso').ariaPressed") == "true"
    page.key("t")
    assert page.eval("document.documentElement.dataset.theme") == "dark"
    page.key("?")
    page.wait("document.querySelector('dialog[open]')")
    page.key("Escape")
    page.eval("document.querySelector('dialog').close()")
    page.key("/")
    assert page.eval("document.activeElement.type") == "search"
    # Every control has a name.
    nameless = page.eval("""[...document.querySelectorAll('button, input, select, canvas.over')].filter((e) =>
        !(e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label')?.textContent.trim())).map((e) => e.outerHTML)""")
    assert nameless == []


def test_figures_are_saved(visit, digits):
    page = ready(visit, digits, (1280, 800), "#ellipses=1&inducing=1")
    page.press("SVG")
    svg = page.downloaded("map.svg").decode()
    assert svg.startswith("<svg") and svg.count("<ellipse") > 200 and "latent dimension 1" in svg and "onerror=" not in svg
    page.press("PNG")
    png = page.downloaded("map.png")
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(png[16:20], "big") > 1500


def test_names_with_markup_are_text(visit, digits):
    page = ready(visit, digits, (1280, 800))
    page.type("input[type=search]", "onerror")
    page.wait("/1 found/.test(document.querySelector('.search').textContent)")
    page.key("Enter")
    page.wait("/row 1\\b/.test(document.querySelector('.side').innerText)")
    page.choose("Colour", page.eval("[...document.querySelectorAll('.colour option')].find((o) => o.textContent === 'scan').value"))
    page.wait("/onerror/.test(document.querySelector('.legend').innerText) || /others|more/.test(document.querySelector('.legend').innerText)")
    assert page.eval("document.querySelectorAll('img, b > b, script:not([src])').length") == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_is_easy_to_read(visit, digits, dark):
    page = visit(digits[0], (1280, 800), dark=dark)
    page.wait("document.querySelectorAll('.legend button').length > 5")
    low = page.eval("""(() => {
        const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        const rgb = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
        const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
        const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
        const found = [];
        for (const e of document.querySelectorAll('#app *')) {
            if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length || e.closest('svg')) continue;
            const [a, b] = [light(rgb(getComputedStyle(e).color)), light(ground(e))];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < 4.5) found.push([e.textContent.trim().slice(0, 30), ratio]);
        }
        return found;
    })()""")
    assert low == []


def test_a_server_that_is_gone_is_told(visit, digits, folder):
    import subprocess

    from conftest import program

    process = subprocess.Popen([program, "explore", str(folder / "digits.lgp"), "--no-open", "-q"], stdout=subprocess.PIPE, text=True)
    page = visit(process.stdout.readline().strip())
    process.terminate()
    process.wait(20)
    hover_at = place(page, 0.5, 0.5)
    page.mouse("mouseMoved", *hover_at)
    page.wait("/still running/.test(document.getElementById('status').textContent)")
    time.sleep(0.2)
    page.complaints.clear()


def test_images_change_smoothly_on_the_path_between_two_digits(visit, digits):
    page = ready(visit, digits, (1280, 800))
    ask = """(async (from, to) => { const ask = (name, what) => fetch(`api/${name}`, { method: 'POST',
            headers: {'content-type': 'application/json'}, body: JSON.stringify(what) }).then((r) => r.json());
        const paths = await ask('path', { from, to });
        const decoded = async (p) => ({ length: p.length, ...(await ask('decode', { x: p.x })) });
        return { straight: await decoded(paths.straight), geodesic: await decoded(paths.geodesic) }; })"""
    _, model, data = digits
    zero, three = model.embedding_[0], model.embedding_[13] if hasattr(model, "embedding_") else model.transform(data[[13]])[0]
    found = page.eval(f"{ask}({list(map(float, zero))}, {list(map(float, three))})")
    assert found["geodesic"]["length"] <= found["straight"]["length"]
    for path in found.values():
        images = np.array(path["mean"])
        steps = np.linalg.norm(np.diff(images, axis=0), axis=1)
        assert steps.max() < 0.2 * steps.sum() and steps.max() < 0.5 * np.ptp(data[:360])
        assert np.linalg.norm(images[-1] - images[0]) > steps.max()
    uncertain = {name: np.array(path["std"]).mean() for name, path in found.items()}
    assert uncertain["geodesic"] <= 1.001 * uncertain["straight"]
