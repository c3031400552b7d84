package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"moorage/internal/web"
	"moorage/management/client"
)

const madeSecret = "mrg_PCqYhZBNT5Ww_secretsecret"

// newKeys returns a server whose visitor is an administrator.
func newKeys() (*web.Server, *fakeAPI) {
	answers := answersOf("key:etl")
	answers["/management/v1/principals/key:etl"] = client.Principal{Name: "key:etl", Keys: []client.Key{{ID: "PCqYhZBNT5Ww", Description: "jobs", Ends: now}}}
	answers["/management/v1/principals/key:etl/keys"] = client.MadeKey{Principal: "key:etl", Secret: madeSecret, Key: client.Key{ID: "PCqYhZBNT5Ww", Ends: now}}
	return newServerWith(Config{Version: "v1", Now: func() time.Time { return now }}, answers)
}

// formIn returns where the prepared change of a page is sent to, and its fields.
func formIn(page string) (action string, form url.Values) {
	form = url.Values{}
	_, main, _ := strings.Cut(page, "<main")
	action = regexp.MustCompile(`action="([^"]*)"`).FindStringSubmatch(main)[1]
	for _, each := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(main, -1) {
		form.Set(each[1], strings.ReplaceAll(strings.ReplaceAll(each[2], "&#34;", `"`), "&amp;", "&"))
	}
	return action, form
}

// TestKeyIsShownOnce makes a key and rotates one: the answer to the form has the secret, no browser
// keeps it, and no address and no other page has it.
func TestKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]struct{ path, body string }{
		keyCreate: {"/management/v1/principals/key:etl/keys", `{"description":"jobs","ends":"2026-12-04T12:00:00Z"}`},
		keyRotate: {"/management/v1/principals/key:etl/keys/PCqYhZBNT5Ww/rotate", `{"grace-seconds":86400}`},
	} {
		server, api := newKeys()
		asked := to(placeKey, client.Object{}, "change", change, "principal", "etl", "key", "PCqYhZBNT5Ww", "description", "jobs", "days", "7")
		prepared := send(server, http.MethodGet, asked.href(), "")
		if prepared.Code != http.StatusOK || strings.Contains(prepared.Body.String(), madeSecret) {
			t.Fatalf("%s: %d\n%s", change, prepared.Code, prepared.Body)
		}
		action, form := formIn(prepared.Body.String())
		w := send(server, http.MethodPost, action, form.Encode())
		last := api.asked[len(api.asked)-1]
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), madeSecret) || w.Header().Get("Cache-Control") != "no-store" ||
			w.Header().Get("Location") != "" || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v\n%s", change, w.Code, w.Header(), w.Body)
		}
		if strings.Contains(w.Body.String(), `value="`+madeSecret) || regexp.MustCompile(`href="[^"]*`+madeSecret).MatchString(w.Body.String()) {
			t.Errorf("%s: a form or an address has the secret:\n%s", change, w.Body)
		}
		var body json.RawMessage
		if json.Unmarshal([]byte(last.body), &body) != nil || last.method != http.MethodPost || last.path != want.path || string(body) != want.body ||
			last.header.Get("Idempotency-Key") != form.Get(fieldKey) {
			t.Errorf("%s sends %s %s %s %v, want %v", change, last.method, last.path, last.body, last.header, want)
		}
	}
}

// TestKeyIsNotShownAgain sends the form of a key again, as a reload does. The page states that the
// secret was shown, the API is not asked, and a new form gets another secret. A form whose key
// could not be made can be sent again.
func TestKeyIsNotShownAgain(t *testing.T) {
	t.Parallel()
	server, api := newKeys()
	asked := to(placeKey, client.Object{}, "change", keyCreate, "principal", "etl")
	action, form := formIn(send(server, http.MethodGet, asked.href(), "").Body.String())
	made := api.answers["/management/v1/principals/key:etl/keys"]
	api.answers["/management/v1/principals/key:etl/keys"] = &client.Error{Code: http.StatusServiceUnavailable}
	if w := send(server, http.MethodPost, action, form.Encode()); w.Code != http.StatusServiceUnavailable {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	api.answers["/management/v1/principals/key:etl/keys"] = made
	if w := send(server, http.MethodPost, action, form.Encode()); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), madeSecret) {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	before := len(api.asked)
	w := send(server, http.MethodPost, action, form.Encode())
	if w.Code != http.StatusGone || strings.Contains(w.Body.String(), madeSecret) || len(api.asked) != before ||
		!strings.Contains(w.Body.String(), "This secret was shown once") || !strings.Contains(w.Body.String(), "make another key") ||
		!strings.Contains(w.Body.String(), `href="/console/principal?principal=key%3Aetl"`) {
		t.Errorf("the form again: %d, asked %v\n%s", w.Code, api.asked[before:], w.Body)
	}
	action, form = formIn(send(server, http.MethodGet, asked.href(), "").Body.String())
	if w := send(server, http.MethodPost, action, form.Encode()); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), madeSecret) {
		t.Errorf("another form: %d\n%s", w.Code, w.Body)
	}
	form.Del(fieldKey)
	if w := send(server, http.MethodPost, action, form.Encode()); w.Code != http.StatusBadRequest {
		t.Errorf("a form without a key: %d\n%s", w.Code, w.Body)
	}
}

// TestSecretsShownIsBounded remembers more forms than there is room for: the oldest ones go, and
// all of them go with the session.
func TestSecretsShownIsBounded(t *testing.T) {
	t.Parallel()
	shown := secretsShown{ends: map[string]time.Time{}}
	for i := range secretsShownMax {
		shown.ends[strconv.Itoa(i)] = now.Add(time.Hour + time.Duration(i))
	}
	shown.show("last", now)
	if len(shown.ends) != secretsShownMax || shown.wasShown("0", now) || !shown.wasShown("1", now) || !shown.wasShown("last", now) {
		t.Errorf("%d forms are remembered", len(shown.ends))
	}
	shown.show("later", now.Add(sessionLife))
	if len(shown.ends) != 1 || shown.wasShown("last", now.Add(sessionLife)) || !shown.wasShown("later", now.Add(sessionLife)) {
		t.Errorf("%d forms are remembered after the session", len(shown.ends))
	}
}

// TestWithdrawKey withdraws a key, and goes back to the principal.
func TestWithdrawKey(t *testing.T) {
	t.Parallel()
	server, api := newKeys()
	asked := to(placeKey, client.Object{}, "change", keyWithdraw, "principal", "key:etl", "key", "PCqYhZBNT5Ww")
	action, form := formIn(send(server, http.MethodGet, asked.href(), "").Body.String())
	w := send(server, http.MethodPost, action, form.Encode())
	last := api.asked[len(api.asked)-1]
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console/principal?done=yes&principal=key%3Aetl" ||
		last.method != http.MethodDelete || last.path != "/management/v1/principals/key:etl/keys/PCqYhZBNT5Ww" {
		t.Errorf("%d %v: %s %s", w.Code, w.Header(), last.method, last.path)
	}
}

// TestWithdrawShowsTheKey asks before a key ends. The page has the key as the API knows it, warns
// of the visitor's own and of the last one, and shows a request without a body. A key that the
// principal does not have has no page with a form.
func TestWithdrawShowsTheKey(t *testing.T) {
	t.Parallel()
	server, _ := newKeys()
	ask := func(change, id string) (int, string) {
		w := send(server, http.MethodGet, to(placeKey, client.Object{}, "change", change, "principal", "key:etl", "key", id).href(), "")
		return w.Code, w.Body.String()
	}
	code, page := ask(keyWithdraw, "PCqYhZBNT5Ww")
	for _, want := range []string{"“jobs”", "2026-11-27 12:00 UTC", "It is the last key of key:etl", `class="primary danger"`} {
		if !strings.Contains(page, want) {
			t.Errorf("%d: the page lacks %s:\n%s", code, want, page)
		}
	}
	if strings.Contains(page, "null") || strings.Contains(page, "a key of yours") {
		t.Errorf("the page has a body, or takes the key for the visitor's:\n%s", page)
	}
	for _, change := range []string{keyWithdraw, keyRotate} {
		if code, page := ask(change, "none"); code != http.StatusNotFound || strings.Contains(page, `class="primary`) || !strings.Contains(page, "has no key none") {
			t.Errorf("%s of a key that is not there: %d\n%s", change, code, page)
		}
	}
	s := newGuarded()
	s.api.answers["/management/v1/principals/key:ann"] = client.Principal{Name: "key:ann", Keys: []client.Key{{ID: "own"}, {ID: "other", Ends: time.Now().Add(time.Hour)}}}
	cookie := cookieOf(s.login(goodKey))
	r := httptest.NewRequest(http.MethodGet, Root+"/principal/key?change=withdraw&principal=key:ann&key=own", nil)
	if w := s.sendFrom("127.0.0.1:5000", r, "Cookie", cookie); !strings.Contains(w.Body.String(), "a key of yours") {
		t.Errorf("the own key: %d\n%s", w.Code, w.Body)
	}
}

// TestKeyForms sends forms that no page has made, and forms of other origins. None reaches the API.
func TestKeyForms(t *testing.T) {
	t.Parallel()
	for place, paths := range map[place][]string{
		placeMakeKey: {
			"/management/v1/grants", "/management/v1/principals/a", "/management/v1/principals/a/keys/b",
			"/management/v1/principals/a/keys?x", "/v1/oauth/tokens", "",
		},
		placeWithdraw: {
			"/management/v1/principals/a", "/management/v1/principals/a/keys", "/management/v1/warehouses/w",
			"/management/v1/principals/a/keys/b/rotate", "",
		},
		placeDo: {"/management/v1/principals/a/keys", "/management/v1/principals/a/keys/b/rotate", "/management/v1/sessions/end"},
	} {
		for _, path := range paths {
			server, api := newKeys()
			form := url.Values{fieldPath: {path}, fieldBody: {"{}"}}.Encode()
			if w := send(server, http.MethodPost, Root+string(place), form); w.Code != http.StatusBadRequest || len(api.asked) > 0 {
				t.Errorf("%s to %s: %d, asked %v", path, place, w.Code, api.asked)
			}
		}
		server, api := newKeys()
		form := url.Values{fieldPath: {"/management/v1/principals/a/keys"}, fieldBody: {"{}"}}.Encode()
		if w := send(server, http.MethodPost, Root+string(place), form, "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden || len(api.asked) > 0 {
			t.Errorf("a page of another origin: %d, asked %v", w.Code, api.asked)
		}
	}
	server, _ := newKeys()
	for _, query := range []string{
		"change=create", "change=rotate&principal=key:a", "change=withdraw&principal=key:a", "change=x&principal=key:a&key=b",
		"change=create&principal=a&days=0", "change=create&principal=a&days=x", "change=create&principal=a&days=9999",
	} {
		if w := send(server, http.MethodGet, Root+string(placeKey)+"?"+query, ""); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", query, w.Code)
		}
	}
}

// TestKeysOfOthers shows a visitor without admin the own keys with their changes, and the form for
// others' keys disabled, with what it needs.
func TestKeysOfOthers(t *testing.T) {
	t.Parallel()
	s := newGuarded()
	s.api.answers["/management/v1/access/check"] = client.Checked{Allowed: []bool{false}}
	s.api.answers["/management/v1/principals/key:ann"] = client.Principal{Name: "key:ann", Keys: []client.Key{{ID: "own"}}}
	s.api.answers["/management/v1/principals/key:etl"] = client.Principal{Name: "key:etl", Keys: []client.Key{{ID: "other"}}}
	s.api.answers["/management/v1/principals"] = &client.Error{Code: http.StatusForbidden, Type: "ForbiddenException", Message: "Not allowed: admin on server"}
	cookie := cookieOf(s.login(goodKey))
	show := func(address string) string {
		w := s.sendFrom("127.0.0.1:5000", httptest.NewRequest(http.MethodGet, Root+address, nil), "Cookie", cookie)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d\n%s", address, w.Code, w.Body)
		}
		return w.Body.String()
	}
	all := show("/principals")
	if !strings.Contains(all, "needs admin on server") || !strings.Contains(all, "principal=key%3Aann") || !strings.Contains(all, "Denied lately") {
		t.Errorf("the page of all principals:\n%s", all)
	}
	if own := show("/principal?principal=key:ann"); strings.Contains(own, "needs admin") || !strings.Contains(own, "change=withdraw") {
		t.Errorf("the own keys:\n%s", own)
	}
	if other := show("/principal?principal=key:etl"); !strings.Contains(other, "needs admin on server") || strings.Contains(other, "change=withdraw") {
		t.Errorf("the keys of others:\n%s", other)
	}
	if prepared := show("/principal/key?change=withdraw&principal=key:etl&key=other"); !strings.Contains(prepared, `disabled>Withdraw the key`) || !strings.Contains(prepared, "needs admin on server") {
		t.Errorf("the prepared change:\n%s", prepared)
	}
}
