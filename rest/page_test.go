package rest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"moorage"
)

type identifierModel struct {
	Namespace moorage.Namespace `json:"namespace"`
	Name      string            `json:"name"`
}

type pageAnswer struct {
	Identifiers   []identifierModel `json:"identifiers"`
	Namespaces    [][]string        `json:"namespaces"`
	NextPageToken *string           `json:"next-page-token"`
}

func getPage(t *testing.T, h http.Handler, path string) (answer pageAnswer) {
	t.Helper()
	w := send(h, "GET", path, "")
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %v %s", path, w.Code, err, w.Body)
	}
	if !strings.Contains(w.Body.String(), `"next-page-token":`) {
		t.Errorf("no next-page-token in %s", w.Body)
	}
	return answer
}

// The parameters determine the page requested from the catalog, and whether the answer has a token
// if there is more.
func TestPageParameters(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		query string
		want  moorage.Page
		token bool
	}{
		{"", moorage.Page{}, false},
		{"?pageSize=5", moorage.Page{}, false},
		{"?pageToken=", moorage.Page{Limit: pageSizes.Default}, true},
		{"?pageToken", moorage.Page{Limit: pageSizes.Default}, true},
		{"?pageToken=&pageSize=1", moorage.Page{Limit: 1}, true},
		{"?pageToken=&pageSize=99999", moorage.Page{Limit: pageSizes.Max}, true},
	} {
		for _, path := range []string{"/v1/namespaces", "/v1/namespaces/a/tables", "/v1/namespaces/a/views"} {
			fake := &fakeCatalog{names: []string{"x"}, next: "x"}
			answer := getPage(t, NewServer(TestConfig{Catalog: fake}), path+row.query)
			if fake.pages[0] != row.want || (answer.NextPageToken != nil) != row.token {
				t.Errorf("%s%s asks for %+v, want %+v; token %v", path, row.query, fake.pages[0], row.want, answer.NextPageToken)
			}
		}
	}
}

// The page for a token begins after the last name of the page that had the token.
func TestPageTokenLeadsOn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x", "é😀", "a/b", " ", "\xf4\x8f\xbf\xbf", strings.Repeat("n", moorage.NameBytesMax)} {
		for _, path := range []string{"/v1/w/namespaces?parent=a%1Fb&", "/v1/namespaces/a%1Fb/tables?", "/v1/namespaces/a%1Fb/views?"} {
			fake := &fakeCatalog{names: []string{name}, next: name}
			h := NewServer(TestConfig{Catalog: fake})
			first := getPage(t, h, path+"pageToken=&pageSize=1")
			fake.next = ""
			second := getPage(t, h, path+"pageSize=7&pageToken="+url.QueryEscape(*first.NextPageToken))
			if want := (moorage.Page{After: name, Limit: 7}); fake.pages[1] != want {
				t.Errorf("%s: the token of %.20q asks for %.40v", path, name, fake.pages[1])
			}
			if second.NextPageToken != nil {
				t.Errorf("%s: the last page has the token %q", path, *second.NextPageToken)
			}
		}
	}
}

// A token is valid only for its own list.
func TestPageTokenIsBound(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{names: []string{"x"}, next: "x"}
	h := NewServer(TestConfig{Catalog: fake})
	lists := []string{
		"/v1/namespaces?", "/v1/w/namespaces?", "/v1/namespaces?parent=a&", "/v1/namespaces?parent=a%1Fb&", "/v1/namespaces/a/tables?",
		"/v1/namespaces/a%1Fb/tables?", "/v1/namespaces/a.b/tables?", "/v1/namespaces/ab/tables?", "/v1/w/namespaces/a/tables?",
		"/v1/namespaces/a/views?", "/v1/namespaces/a%1Fb/views?", "/v1/w/namespaces/a/views?",
	}
	for _, made := range lists {
		token := *getPage(t, h, made+"pageToken=").NextPageToken
		for _, used := range lists {
			w := send(h, "GET", used+"pageToken="+token, "")
			if (w.Code == 200) != (made == used) {
				t.Errorf("the token of %s is answered %d by %s", made, w.Code, used)
			}
		}
	}
}

func TestBadPages(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{names: []string{"x"}, next: "x"}
	h := NewServer(TestConfig{Catalog: fake})
	const tokenBytesHead = 1 + 8 // the version and the id of the list
	token := *getPage(t, h, "/v1/namespaces?pageToken=").NextPageToken
	content, _ := base64.RawURLEncoding.DecodeString(token)
	sealed := func(change func(content []byte) []byte) string {
		return base64.RawURLEncoding.EncodeToString(change(slices.Clone(content)))
	}
	queries := []string{
		"pageSize=0", "pageSize=-1", "pageSize=x", "pageSize=", "pageSize=1.5", "pageSize=99999999999999999999", "pageSize=1&pageSize=1", "pageSize=%201", "pageSize=0x10",
		"pageToken=x", "pageToken=%00", "pageToken=" + token + "=", "pageToken=" + token + "!", "pageToken=&pageToken=", "pageToken=null", "pageToken=1000",
		"pageToken=%zz", "pageToken=a;b", "pageToken=" + strings.Repeat("A", 100_000),
		"pageToken=" + sealed(func(c []byte) []byte { c[0]++; return c }),
		"pageToken=" + sealed(func(c []byte) []byte { c[1]++; return c }),
		"pageToken=" + sealed(func(c []byte) []byte { return c[:tokenBytesHead] }),
		"pageToken=" + sealed(func(c []byte) []byte { return append(c, 0) }),
		"pageToken=" + sealed(func(c []byte) []byte { return append(c, 0xff) }),
		"pageToken=" + sealed(func(c []byte) []byte { return append(c, make([]byte, moorage.NameBytesMax)...) }),
	}
	for i, query := range queries {
		t.Run(fmt.Sprintf("%d %.30s", i, query), func(t *testing.T) {
			wantFailure(t, send(h, "GET", "/v1/namespaces?"+query, ""), 400, "BadRequestException")
		})
	}
	if len(fake.calls) != 1 {
		t.Errorf("bad pages reach the catalog: %q", fake.calls)
	}
}

// A list is the same as encoding/json would write, whatever the names are.
func TestIdentifiersJSON(t *testing.T) {
	t.Parallel()
	token := `a"b`
	odd := []string{"plain", `quo"te`, `back\slash`, "tab\there", "nul\x00", "é", "日本", "<&>", "\u2028", ""}
	for _, row := range []struct {
		namespace moorage.Namespace
		names     []string
		token     *string
	}{
		{moorage.Namespace{"a"}, []string{}, nil},
		{moorage.Namespace{"a"}, []string{"t"}, nil},
		{moorage.Namespace{"a", `b"c`, "d\ne"}, odd, &token},
		{odd, odd, nil},
	} {
		want := pageAnswer{Identifiers: []identifierModel{}, NextPageToken: row.token}
		for _, name := range row.names {
			want.Identifiers = append(want.Identifiers, identifierModel{row.namespace, name})
		}
		text := identifiersJSON(row.namespace, row.names, row.token)
		var got pageAnswer
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q of %q: %s is %+v (%v), want %+v", row.names, row.namespace, text, got, err, want)
		}
	}
}
