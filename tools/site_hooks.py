"""Changes that mkdocs makes to each page besides those of its plugins.

Roles of docstrings (:func:`solve`) become plain code. Pictures are links to themselves, so that they can be
enlarged on a phone.
"""

import re

ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):(?=<code>)")
PICTURE = re.compile(r'<img [^>]*src="([^"]+\.png)"[^>]*>')


def on_page_content(html: str, **_: object) -> str:
    return PICTURE.sub(r'<a href="\1">\g<0></a>', ROLE.sub("", html))
