"""Whether a browser's pages are light or dark: a cookie, since it is about the screen and not the user."""

from http.cookies import CookieError, SimpleCookie
from typing import Literal, get_args

from fastapi import Response
from starlette.datastructures import Headers

Theme = Literal["auto", "light", "dark"]
"""`auto`: as the system says."""

COOKIE = "edt_theme"
LASTS = 365 * 86400
"""Seconds for which a browser remembers it."""


def theme_of(headers: Headers) -> Theme:
    """The theme that a browser was given; `auto` without one."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return "auto"
    return next((theme for theme in get_args(Theme) if found is not None and theme == found.value), "auto")


def remember(answer: Response, theme: Theme) -> None:
    """Give a browser a theme."""
    answer.set_cookie(COOKIE, theme, max_age=LASTS, path="/", httponly=True, samesite="strict")
