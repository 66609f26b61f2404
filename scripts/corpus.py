#!/usr/bin/env python3
"""Makes a corpus of English prose and source code from Debian's packages: text for `exmy data`.

    scripts/corpus.py OUT             # the packages, versions and sums of scripts/corpus.json
    scripts/corpus.py OUT --update    # the versions that apt has now; writes scripts/corpus.json

Needs Python 3, dpkg-deb and apt-get with the package lists of Debian 12 ("bookworm"), section main.
OUT/packages gets the packages, OUT/text the corpus as text-NN.xz, each under 45 MB: documents in the order of
their SHA-256, divided by <|endoftext|>. Then

    exmy data OUT/text --out OUT/tokens --validation 0.01

makes the token files of which scripts/corpus-tokens.json is the manifest.

What becomes a document: a page of HTML without its markup, a manual page without roff, some pages of a
dictionary, plain text, a file of source code. Left out are documents that are equal to another one, short
ones, those in other scripts than Latin, those with few words, indexes, and lines that many pages of one
package share. A package gives at most as many megabytes as stand below, so that none prevails; which documents,
their SHA-256 decides.
"""

import argparse
import collections
import concurrent.futures
import gzip
import hashlib
import html
import io
import json
import lzma
import pathlib
import re
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
MANIFEST = HERE / "corpus.json"
END = "<|endoftext|>"
PIECE = 100_000_000  # bytes of text in a piece; its xz is a quarter of that
LIMIT = 45_000_000
SHORTEST, LONGEST = 400, 2_000_000  # bytes of a document

DOC = re.compile(
    r"usr/share/(doc|gtk-doc|help|info|man/man\d|libreoffice/help|gimp/.*/help"
    r"|debian-reference|games/fortunes|misc|vim/.*/doc|.*doc)/|/Documentation/"
)
JUNK = re.compile(
    r"genindex|searchindex|search\.html|py-modindex|/_sources/|/_static/|/_modules/|/src/|/implementors/"
    r"|doc-index|/index-all|allclasses|package-tree|overview-tree|class-use|/changelog|copyright|NEWS|AUTHORS"
    r"|/licen[sc]e|COPYING|/search/|classes\.html|hierarchy|functions_\w\.html|globals|/annotated"
    r"|-members\.html|_source\.html|trait\.|/keyword\.|dir_\w+\.html|graph_legend|inherits",
    re.IGNORECASE,
)
# Pages in other languages, by the ways packages name them.
FOREIGN = re.compile(
    r"[./_-](de|fr|es|ja|ko|pt|pt[-_]BR|ru|tr|zh|zh[-_]\w+|it|pl|nl|da|cs|sv|ca|hu|el|fi|vi|id|ro|uk"
    r"|nb|no|sk|sl|ar|fa|he|hr|lt|sr|gl|eu|bg|et|lv|ta|te|hi|th|[a-z]{2}[-_](?!US|GB|us|gb)[A-Z]{2})"
    r"(\.UTF-8|\.utf8)?([./_-]|$)"
)
PROSE = {  # package: megabytes at most
    "ada-reference-manual-2012": 8, "anarchism": 15, "apache2-doc": 10, "aptitude-doc-en": 5, "avr-libc": 5,
    "axiom-doc": 10, "bacula-doc": 10, "bash-doc": 5, "bind9-doc": 5, "cinder-doc": 8, "clang-14-doc": 5,
    "cmake-doc": 8, "cppreference-doc-en-html": 20, "debian-faq": 3, "debian-handbook": 5,
    "debian-policy": 4, "debian-reference-en": 4, "debmake-doc": 4, "developers-reference": 4,
    "dict-devil": 2, "dict-elements": 2, "dict-foldoc": 8, "dict-gcide": 40, "dict-jargon": 3,
    "dict-wn": 25, "erlang-doc": 15, "exim4-doc-html": 5, "fortunes": 5, "fp-docs-3.2.2": 12, "gap-doc": 8,
    "gcl-doc": 4, "ghc-doc": 10, "gimp-help-en": 8, "git-doc": 8, "git-man": 4, "gnome-user-docs": 5,
    "gnucash-docs": 6, "gnumeric-doc": 4, "gnuplot-doc": 4, "haskell98-report": 3,
    "installation-guide-amd64": 4, "keystone-doc": 8, "kicad-doc-en": 6, "libboost1.81-doc": 20,
    "libreoffice-help-en-us": 12, "libssl-doc": 6, "libvirt-doc": 6, "lilypond-doc-html": 12,
    "linux-source-6.1": 40, "llvm-14-doc": 10, "manpages": 6, "manpages-dev": 8, "maxima-doc": 8,
    "miscfiles": 4, "mit-scheme-doc": 4, "neutron-doc": 8, "nodejs-doc": 8, "nova-doc": 8, "octave-doc": 8,
    "openjdk-17-doc": 20, "openmpi-doc": 5, "openvswitch-doc": 5, "perl-doc": 15, "postfix-doc": 5,
    "postgresql-doc-15": 12, "python-django-doc": 12, "python-pandas-doc": 15, "python-scipy-doc": 12,
    "python-sklearn-doc": 10, "python-sqlalchemy-doc": 10, "python-sympy-doc": 10, "python3.11-doc": 15,
    "qtbase5-doc-html": 15, "racket-doc": 20, "rust-doc": 20, "sbcl-doc": 4, "scala-doc": 5,
    "shorewall-doc": 6, "singular-doc": 8, "slurm-wlm-doc": 5, "spamassassin": 3, "sphinx-doc": 4,
    "sqlite3-doc": 15, "swi-prolog-doc": 6, "systemd": 4, "tcl8.6-doc": 5, "tcllib": 5, "varnish-doc": 4,
    "vim-runtime": 8, "xorg-docs": 4, "yorick-doc": 3,
}
KERNEL = (
    r"/(kernel|mm|fs|block|ipc|security|crypto|init|lib|net|sound/core|virt|io_uring|rust|samples|scripts"
    r"|tools|arch/x86|arch/arm64|arch/riscv|include/linux|include/net|drivers/(base|block|char|clk|cpufreq"
    r"|dma|hid|i2c|input|iommu|md|mmc|mtd|nvme|pci|scsi|spi|tty|usb|virtio|net/ethernet/intel))/"
)
CODE = {  # package: megabytes at most, what of it
    "linux-source-6.1": (90, KERNEL + r".*\.(c|h|S|rs|py|pl|sh|awk)$|Makefile$|Kconfig$"),
    "golang-1.19-src": (25, r"\.(go|s)$"),
    "rust-src": (25, r"library/.*\.rs$"),
    "libpython3.11-stdlib": (12, r"\.py$"),
    "python3-django": (8, r"\.py$"),
    "python3-sympy": (12, r"\.py$"),
    "libruby3.1": (8, r"\.rb$"),
    "emacs-el": (15, r"\.el(\.gz)?$"),
    "hol-light": (6, r"\.ml$"),
}
TEXT = re.compile(
    r"\.(txt|md|rst|pod|text|asc|texi|page|xml|docbook|doc)$|/(README|INSTALL|HOWTO|FAQ|TODO)[^/]*$"
)


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def candidate(package, version=None):
    """Name, version and sum of a package, as apt's list has them."""
    name = f"{package}={version}" if version else package
    found = subprocess.run(["apt-cache", "show", name], capture_output=True, text=True).stdout.split("\n\n")[
        0
    ]
    fields = dict(re.findall(r"^(\w[\w-]*): (.*)$", found, re.MULTILINE))
    return {"version": fields["Version"], "sha256": fields["SHA256"]} if "SHA256" in fields else None


def fetch(package, wanted, folder):
    """The package's file, loaded if it is not there."""
    path = folder / f"{package}_{wanted['version'].replace(':', '%3a')}.deb"
    if not path.exists():
        place = folder / f"loading-{package}"
        place.mkdir(exist_ok=True)
        run("apt-get", "download", "-qq", f"{package}={wanted['version']}", cwd=place)
        (loaded,) = place.glob("*.deb")
        loaded.rename(path)
        place.rmdir()
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != wanted["sha256"]:
        sys.exit(f"{path} has the SHA-256 {found}, not {wanted['sha256']}: remove it and try again")
    return path


def files(path):
    """The plain files of a package by name, those of an archive of sources in it too."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE) as unpacked:
        with tarfile.open(fileobj=unpacked.stdout, mode="r|") as archive:
            for entry in archive:
                name = entry.name.removeprefix("./")
                if not entry.isfile():
                    continue
                if re.fullmatch(r"usr/src/.*\.tar\.xz", name):
                    with tarfile.open(fileobj=archive.extractfile(entry), mode="r|xz") as inner:
                        for entry in inner:
                            if entry.isfile() and entry.size <= 4 * LONGEST:
                                yield entry.name, inner.extractfile(entry).read()
                elif entry.size <= 50 * LONGEST:
                    yield name, archive.extractfile(entry).read()
        unpacked.stdout.read()


def decoded(data):
    """Text of bytes: UTF-8, else Latin-1 if they say so or look so; None if they are no text."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1") if data.count(b"\x80") == 0 else None


DROPPED = re.compile(
    r"(?is)<(script|style|head|nav|header|footer|svg|math|form|select|button)\b.*?</\1\s*>"
    r"|<!--.*?-->|<\?.*?\?>|<div[^>]*(sphinxsidebar|navigation|related|navheader|navfooter|breadcrumb"
    r"|toc\b)[^>]*>.*?</div>"
)
BROKEN = re.compile(
    r"(?i)</?(p|div|br|h\d|li|ul|ol|dl|dt|dd|tr|table|pre|section|article|blockquote|hr|title"
    r"|para|sect\d|screen|programlisting)\b[^>]*>"
)
CELL = re.compile(r"(?i)</t[dh]\s*>")
MARK = re.compile(r"<[^>]{0,2000}>")


def plain_html(text):
    """The words of a page; lines of `pre` stay lines, others are joined."""
    kept = []
    for i, part in enumerate(re.split(r"(?is)<pre\b[^>]*>(.*?)</pre\s*>", DROPPED.sub("\n", text))):
        if i % 2 == 0:
            part = BROKEN.sub("\0", CELL.sub(" ", part))
            part = re.sub(r"[ \t\r\n\f]+", " ", MARK.sub("", part))
            part = html.unescape(part)
            part = "\n".join(line.strip() for line in part.split("\0"))
        else:
            part = "\n" + html.unescape(MARK.sub("", part)).rstrip() + "\n"
        kept.append(part)
    return re.sub(r"\n{3,}", "\n\n", "".join(kept)).replace("\u00b6", "").strip() + "\n"


FONT = re.compile(r"\\f(\[\w*\]|\(\w\w|.)|\\s[+-]?\d|\\[|^&/,:%]|\\m\[\w*\]")
SIGNS = {
    "\\-": "-", "\\(bu": "*", "\\(em": "\u2014", "\\(en": "\u2013", "\\(aq": "'", "\\(dq": "\"",
    "\\(lq": "\"", "\\(rq": "\"", "\\e": "\\", "\\ ": " ", "\\~": " ", "\\0": " ", "\\(co": "(c)",
    "\\(ti": "~", "\\(ha": "^", "\\*(L\"": "\"", "\\*(R\"": "\"", "\\*(C`": "", "\\*(C'": "",
    "\\*(--": "\u2014", "\\(ga": "`", "\\(oq": "'", "\\(cq": "'", "\\.": ".", "\\*(lq": "\"",
    "\\*(rq": "\"", "\\(mi": "-", "\\(->": "->",
}


def plain_man(text):
    """The words of a manual page: macros of fonts and headings give their arguments, others nothing."""
    lines = []
    skipped = None
    for line in text.splitlines():
        if skipped:
            skipped = None if re.match(skipped, line) else skipped
            continue
        if re.match(r"\.\s*(de|ig|TS|EQ|am)\b", line):
            skipped = {"TS": r"\.TE", "EQ": r"\.EN"}.get(line.strip(". ")[:2], r"\.\.")
            continue
        if line.startswith(
            ('."', '.\\"', "'\\\"", ".if", ".ie", ".el", ".nr", ".ds", ".so", ".ad", ".nh", ".hy")
        ):
            continue
        found = re.match(r"[.']\s*([A-Za-z]+)\s*(.*)", line)
        if found:
            macro, rest = found.groups()
            words = [a or b for a, b in re.findall(r'"((?:[^"]|"")*)"|(\S+)', rest)]
            if macro in ("SH", "SS", "Sh", "Ss"):
                line = "\n" + " ".join(words) + "\n"
            elif macro in ("BR", "BI", "IR", "RB", "IB", "RI"):
                line = "".join(words)
            elif macro in (
                "B",
                "I",
                "SM",
                "SB",
                "IP",
                "Fl",
                "Ar",
                "Nm",
                "Xr",
                "Pa",
                "Cm",
                "Nd",
                "Dv",
                "Em",
                "Li",
            ):
                line = " ".join(words[:1] if macro == "IP" else words)
            elif macro in ("PP", "P", "LP", "TP", "sp", "Pp", "br", "TQ"):
                line = ""
            else:
                continue
        line = FONT.sub("", line)
        for sign, meaning in SIGNS.items():
            line = line.replace(sign, meaning)
        lines.append(re.sub(r"\\\[u([0-9A-F]{4})\]", lambda m: chr(int(m[1], 16)), line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def is_prose(text):
    """Whether words make up a text, in Latin letters."""
    sample = text[:200_000]
    letters = sum(c.isascii() and c.isalpha() for c in sample)
    if letters < 0.55 * len(sample):
        return False
    words = re.findall(r"[A-Za-z']+", sample)
    common = sum(word.lower() in COMMON for word in words)
    return len(words) > 60 and common > 0.12 * len(words)


COMMON = set(
    "the of and to a in is that for it as with be on are this by not or an from if which at can but "
    "will you has have was were all when one its more may should used use".split()
)


def documents(package, path):
    """What a package gives: 'page' (prose that may have a frame), 'prose' or 'code', and the text."""
    code = re.compile(CODE[package][1]) if package in CODE else None
    for name, data in files(path):
        if name.endswith(".dict.dz"):
            yield from (
                ("prose", entry) for entry in chapters(gzip.decompress(data).decode("utf-8", "replace"))
            )
            continue
        if name.endswith(".gz"):
            name, data = name[:-3], gzip.decompress(data)
        if len(data) < SHORTEST:
            continue
        if code and code.search(name):
            text = decoded(data)
            if text and len(text) <= 400_000 and is_code(text):
                yield "code", text
            continue
        if package not in PROSE or JUNK.search(name) or FOREIGN.search(name):
            continue
        if not DOC.search(name):
            continue
        text = decoded(data)
        if text is None:
            continue
        if re.search(r"\.x?html?(\.en)?$", name):
            yield "page", plain_html(text)
            continue
        elif re.search(r"/man\d/.*\.\d\w*$", name):
            text = plain_man(text)
        elif re.search(r"\.(page|xml|docbook)$", name):
            text = plain_html(text)
        elif re.search(r"/info/.*\.info(-\d+)?$", name):
            text = re.sub(r"\x1f\n.*\n|\x00\x08\[[^\]]*\]|\x7f.*", "\n", text)
        elif not (TEXT.search(name) or package in ("fortunes", "miscfiles")):
            continue
        yield "prose", text


def chapters(text):
    """A dictionary in documents of some pages, divided before lines that are not indented."""
    begin = 0
    while begin < len(text):
        found = re.compile(r"\n(?=\S)").search(text, begin + 20_000)
        end = found.end() if found else len(text)
        yield text[begin:end].strip() + "\n"
        begin = end


def is_code(text):
    """Whether people wrote it: no line is very long, few numbers, not said to be generated."""
    lines = text.splitlines()
    if max(map(len, lines), default=0) > 500 or re.search(r"(?i)auto-?generated|do not edit", text[:2000]):
        return False
    digits = sum(c.isdigit() for c in text)
    return digits < 0.15 * len(text)


def tidy(text):
    """One form of line ends and blanks, no control characters, and no end of text inside."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace(END, "<endoftext>")
    text = re.sub(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufffd\ufeff]", "", text).replace("\x0c", "\n")
    text = re.sub(r"[ \t]+\n", "\n", text)
    return re.sub(r"\n{4,}", "\n\n\n", text).strip("\n") + "\n"


def gathered(job):
    """The documents of a package that are used, with their sums, and what was left out of it and why."""
    package, path = job
    found, left = [], collections.Counter()
    for kind, text in documents(package, path):
        found.append((kind, tidy(text)))
    # Lines that many pages share are frames of the pages.
    seen = collections.Counter()
    pages = [text for kind, text in found if kind == "page"]
    for text in pages:
        seen.update({line for line in text.splitlines() if line})
    many = max(8, len(pages) // 50)
    kept = {}
    for kind, text in found:
        if kind == "page":
            kind, text = "prose", tidy("\n".join(line for line in text.split("\n") if seen[line] <= many))
        size = len(text.encode())
        if not SHORTEST <= size <= LONGEST:
            left["length"] += 1
        elif kind == "prose" and not is_prose(text):
            left["few words"] += 1
        else:
            digest = hashlib.sha256(text.encode()).hexdigest()
            left["equal"] += digest in kept
            kept[digest] = (kind, text)
    chosen = []
    for kind in ("prose", "code"):
        most = {"prose": PROSE.get(package, 0), "code": CODE.get(package, (0,))[0]}[kind] * 1_000_000
        for digest in sorted(digest for digest in kept if kept[digest][0] == kind):
            size = len(kept[digest][1].encode())
            if size <= most:
                most -= size
                chosen.append((digest, kind, kept[digest][1]))
            else:
                left["enough"] += 1
    return package, chosen, dict(sorted(left.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=pathlib.Path, help="folder to write")
    parser.add_argument("--update", action="store_true", help="take the versions that apt has now")
    arguments = parser.parse_args()
    known = json.loads(MANIFEST.read_text()) if MANIFEST.exists() and not arguments.update else None
    if known is None and not arguments.update:
        sys.exit(f"{MANIFEST} is not there: --update makes it")
    packages = {}
    for package in sorted({*PROSE, *CODE}) if known is None else known["packages"]:
        wanted = candidate(package, known and known["packages"][package]["version"])
        if wanted is None:
            if known:
                sys.exit(
                    f"apt lacks {package} {known['packages'][package]['version']}: --update takes others"
                )
            print(f"apt has no {package}: left out", file=sys.stderr)
            continue
        packages[package] = known["packages"][package] if known else wanted
    store, texts = arguments.out / "packages", arguments.out / "text"
    for folder in (store, texts):
        folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for package, wanted in packages.items():
        print(f"loading {package} {wanted['version']}", file=sys.stderr)
        jobs.append((package, fetch(package, wanted, store)))

    everything, counted = {}, {}
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        for package, chosen, left in pool.map(gathered, jobs):
            sums = {"prose": [0, 0], "code": [0, 0]}
            for digest, kind, text in chosen:
                if digest in everything:
                    left["equal elsewhere"] = left.get("equal elsewhere", 0) + 1
                    continue
                everything[digest] = text
                sums[kind][0] += 1
                sums[kind][1] += len(text.encode())
            counted[package] = {
                kind: dict(zip(("documents", "bytes"), sums[kind])) for kind in sums if sums[kind][0]
            }
            print(f"{package}: {counted[package]}, left out {left}", file=sys.stderr)
            counted[package]["left_out"] = left
    total = {
        kind: {
            what: sum(counted[p].get(kind, {}).get(what, 0) for p in counted)
            for what in ("documents", "bytes")
        }
        for kind in ("prose", "code")
    }

    for old in texts.glob("text-*.xz"):
        old.unlink()
    whole, pieces, piece = hashlib.sha256(), [], io.BytesIO()

    def write():
        data = piece.getvalue()
        path = texts / f"text-{len(pieces):02}.xz"
        packed = lzma.compress(data, preset=6)
        assert len(packed) < LIMIT, f"{path} has {len(packed)} bytes"
        path.write_bytes(packed)
        pieces.append(
            {
                "file": path.name,
                "bytes": len(packed),
                "text_bytes": len(data),
                "text_sha256": hashlib.sha256(data).hexdigest(),
            }
        )
        print(f"{path}: {len(data)} bytes in {len(packed)}", file=sys.stderr)
        piece.seek(0)
        piece.truncate()

    for digest in sorted(everything):
        data = (everything[digest] + END + "\n").encode()
        if piece.tell() + len(data) > PIECE:
            write()
        piece.write(data)
        whole.update(data)
    write()

    made = {
        "text_sha256": whole.hexdigest(),
        "text_bytes": sum(p["text_bytes"] for p in pieces),
        "mixture": total,
        "pieces": pieces,
        "packages": {
            p: {**{k: packages[p][k] for k in ("version", "sha256")}, **counted[p]} for p in packages
        },
    }
    if known is None:
        MANIFEST.write_text(json.dumps(made, indent=1) + "\n")
    elif made["text_sha256"] != known["text_sha256"]:
        sys.exit(
            f"the text has the SHA-256 {made['text_sha256']}, not {known['text_sha256']} as {MANIFEST} says"
        )
    print(json.dumps({k: made[k] for k in ("text_sha256", "text_bytes", "mixture")}, indent=1))


if __name__ == "__main__":
    main()
