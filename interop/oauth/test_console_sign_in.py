"""A person signs in to the console at Keycloak, as a browser does it."""

import html
import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from harness.keycloak import LIFETIME_SECONDS, PERSON

pytestmark = pytest.mark.moorage_only

ATTEMPTS_MAX = 12

NAME = "corp:" + PERSON["id"]


class Browser(requests.Session):
    """A client with cookies. Like a browser it sends secure cookies to loopback addresses also without TLS."""

    def prepare_request(self, request):
        for cookie in self.cookies:
            cookie.secure = False
        return super().prepare_request(request)


@pytest.fixture
def browser():
    with Browser() as session:
        yield session


def go_to_keycloak(browser, server):
    """Sends the form of the console's login page, and opens the page at Keycloak to which it leads."""
    form = {"provider": "corp", "back": "/console/warehouses"}
    for _ in range(ATTEMPTS_MAX):
        page = browser.post(f"{server.uri}/console/login/provider", data=form)
        if page.status_code != 503:
            break
        time.sleep(10)  # Keycloak's first answers take a small machine longer than the server waits
    assert page.status_code == 200, page.text
    return browser.get(page.headers["Refresh"].removeprefix("0; url="))


def type_password(browser, page, password):
    """Sends the form of Keycloak's login page."""
    action = html.unescape(re.search(r'<form[^>]* action="([^"]+)"', page.text).group(1))
    return browser.post(action, data={"username": PERSON["username"], "password": password})


def test_sign_in(corporate_server, browser):
    first = browser.get(f"{corporate_server.uri}/console/warehouses")
    assert first.url.endswith("/console/login?back=%2Fconsole%2Fwarehouses") and "Sign in with" in first.text
    page = go_to_keycloak(browser, corporate_server)
    refused = type_password(browser, page, "wrong")
    assert "/realms/" in refused.url, refused.url
    page = type_password(browser, refused, PERSON["password"])
    began = time.monotonic()
    assert page.url == f"{corporate_server.uri}/console/warehouses" and page.status_code == 200, page.text
    assert NAME in page.text and corporate_server.warehouse in page.text

    # The same answer of Keycloak is good once.
    back = next(each.url for each in page.history if "/console/login/at/corp" in each.url)
    again = browser.get(back)
    assert again.status_code == 401 and "has begun no sign-in" in again.text

    # The session ends with the token. Keycloak still knows the person.
    time.sleep(max(0, LIFETIME_SECONDS + 1 - (time.monotonic() - began)))
    assert "/console/login" in browser.get(f"{corporate_server.uri}/console/warehouses").url
    page = go_to_keycloak(browser, corporate_server)
    assert page.url == f"{corporate_server.uri}/console/warehouses" and NAME in page.text


def test_another_code(corporate_server, browser):
    """A code that Keycloak has given to another browser is of no use: its state and verifier are elsewhere."""
    with Browser() as other:
        page = go_to_keycloak(other, corporate_server)
        action = html.unescape(re.search(r'<form[^>]* action="([^"]+)"', page.text).group(1))
        form = {"username": PERSON["username"], "password": PERSON["password"]}
        stolen = other.post(action, data=form, allow_redirects=False).headers["Location"]
    go_to_keycloak(browser, corporate_server)
    refused = browser.get(stolen)
    assert refused.status_code == 401 and "does not belong" in refused.text
    # Also with the state of this browser's own sign-in: Keycloak gives no token without the verifier of the other one.
    state = parse_qs(urlsplit(go_to_keycloak(browser, corporate_server).url).query)["state"][0]
    refused = browser.get(re.sub(r"\bstate=[^&]+", f"state={state}", stolen))
    assert refused.status_code == 401 and "invalid_grant" in refused.text
