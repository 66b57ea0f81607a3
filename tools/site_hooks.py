"""Changes that mkdocs makes to each page besides those of its plugins.

Roles of docstrings (:func:`solve`) become plain code. Pictures are links to themselves, so that they can be
enlarged on a phone; those of `make pictures` have two pixels for each pixel of the page, for sharp screens.
Short code with hyphens, such as ``--where`` or ``B-NP``, is kept on one line.
"""

import re

ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):(?=<code>)")
PICTURE = re.compile(r'<img [^>]*src="([^"]+\.png)"[^>]*>')
DRAWN = re.compile(r'src="((?:\.\./)?pictures/[^"]+\.png)"')
HYPHENS = re.compile(r"<code>(?=[^<\n]{2,28}</code>)(?=[^<]*-)")


def on_page_content(html: str, **_: object) -> str:
    html = HYPHENS.sub('<code class="unbroken">', ROLE.sub("", html))
    html = DRAWN.sub(r'src="\1" srcset="\1 2x"', html)
    return PICTURE.sub(r'<a href="\1">\g<0></a>', html)
