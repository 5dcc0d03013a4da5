"""The built site in a headless Chromium, from files: its search, without a network.

    python3 main.py --chromium PROGRAM BOOK
"""

import argparse
import sys
import tempfile
from pathlib import Path

from browser import Browser

# A word of one page, and the page that a search for it must name.
SEARCHES = {
    "GETKEYSANDFLAGS": "commands.html",
    "appendfsync": "configuration.html",
    "redis_memory_max_bytes": "metrics.html",
}


def finds(browser, book, word, page):
    browser.load(f"{book.as_uri()}/index.html?search={word}")
    browser.wait("document.querySelector('#mdbook-searchresults-header, #searchresults-header')?.innerText.length > 0",
                 f"the answer to a search for {word}")
    links = browser.run("[...document.querySelectorAll('#mdbook-searchresults a, #searchresults a')].map(a => a.href)")
    found = any(page in link for link in links)
    assert found, f"{word} is found in {links[:5]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--chromium", required=True)
    parser.add_argument("book", type=Path)
    options = parser.parse_args()
    failed = 0
    scratch = tempfile.TemporaryDirectory(prefix="onggi-test-", ignore_cleanup_errors=True)
    with scratch as directory, Browser(options.chromium, Path(directory) / "profile") as browser:
        for word, page in SEARCHES.items():
            try:
                finds(browser, options.book.resolve(), word, page)
                print(f"ok - a search for {word} finds {page}", flush=True)
            except AssertionError as problem:
                failed += 1
                print(f"not ok - a search for {word} finds {page}: {problem}", flush=True)
        if not browser.console:
            print("ok - the console has no error", flush=True)
        else:
            failed += 1
            print(f"not ok - the console has no error: {browser.console[:5]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
