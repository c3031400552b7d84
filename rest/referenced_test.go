package rest

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"moorage"
)

// Each value of referenced-by is either read as the specification requires, or refused with 400.
func TestReferencedBy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		query string
		want  string // views with semicolons between them, levels with slashes
	}{
		"none":                       {"snapshots=all", ""},
		"one view":                   {"referenced-by=ns%1Fv", "ns/v"},
		"levels":                     {"referenced-by=a%1fb%1Fv", "a/b/v"},
		"two views":                  {"referenced-by=prod%1Fanalytics%1Fquarterly,prod%1Fmonthly", "prod/analytics/quarterly;prod/monthly"},
		"a comma in a name":          {"referenced-by=ns%1Fa%2Cb,ns%1Fc", "ns/a,b;ns/c"},
		"a comma in a level":         {"referenced-by=n%2Cs%1Fv", "n,s/v"},
		"a percent sign":             {"referenced-by=ns%1F100%25", "ns/100%"},
		"what looks encoded":         {"referenced-by=ns%1F%252C", "ns/%2C"},
		"spaces":                     {"referenced-by=ns%1Fa%20b+c", "ns/a b c"},
		"letters":                    {"referenced-by=ns%1F%E6%97%A5", "ns/日"},
		"encoded as a whole":         {"referenced-by=ns%251Fa%252Cb%2Cns%251Fc", "ns/a,b;ns/c"},
		"the same twice":             {"referenced-by=ns%1Fv&snapshots=all&referenced-by=ns%1Fv", "ns/v"},
		"two values":                 {"referenced-by=ns%1Fv&referenced-by=ns%1Fw", "400"},
		"empty":                      {"referenced-by=", "400"},
		"no value":                   {"referenced-by", "400"},
		"no namespace":               {"referenced-by=v", "400"},
		"an empty namespace":         {"referenced-by=%1Fv", "400"},
		"an empty level":             {"referenced-by=a%1F%1Fv", "400"},
		"an empty name":              {"referenced-by=ns%1F", "400"},
		"an empty view":              {"referenced-by=ns%1Fv,,ns%1Fw", "400"},
		"a comma at the end":         {"referenced-by=ns%1Fv,", "400"},
		"dots":                       {"referenced-by=ns.v", "400"},
		"a broken escape":            {"referenced-by=ns%1Fv%2", "400"},
		"a broken escape inside one": {"referenced-by=ns%251Fv%25", "400"},
		"NUL":                        {"referenced-by=ns%1Fv%00", "400"},
		"no UTF-8":                   {"referenced-by=ns%1F%ff", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := strings.Replace(strings.Replace(tablePath, "/tables/", "/views/", 1), "/credentials", "", 1)
			for _, path := range []string{tablePath, view, tablePath + "/credentials"} {
				fake := &fakeCatalog{table: sampleTable(t, 1), view: sampleView(t, 1), access: vendedAccess("1")}
				w := send(NewServer(TestConfig{Catalog: fake}), "GET", path+"?"+tt.query, "")
				if tt.want == "400" {
					if w.Code != 400 || !strings.Contains(w.Body.String(), "BadRequestException") || len(fake.calls) > 0 {
						t.Errorf("%s: %d %s", path, w.Code, w.Body)
					}
					continue
				}
				if got := spelled(fake.through); w.Code != 200 || got != tt.want {
					t.Errorf("%s: %d, through %q, want %q", path, w.Code, got, tt.want)
				}
			}
		})
	}
}

func spelled(views []moorage.Identifier) string {
	texts := make([]string, len(views))
	for i, view := range views {
		texts[i] = strings.Join(append(view.Namespace, view.Name), "/")
	}
	return strings.Join(texts, ";")
}

// If a client came through views, its next request names the same views.
func TestQueryOfViews(t *testing.T) {
	t.Parallel()
	views := []moorage.Identifier{
		{Namespace: moorage.Namespace{"a", "b,c"}, Name: "v w"}, {Namespace: moorage.Namespace{"%"}, Name: "日+&"},
	}
	const want = "?referenced-by=a%1Fb%2Cc%1Fv%20w,%25%1F%E6%97%A5%2B%26"
	if got := queryOfViews(views); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := queryOfViews(nil); got != "" {
		t.Errorf("without views: %s", got)
	}
	fake := &fakeCatalog{access: vendedAccess("1")}
	send(NewServer(TestConfig{Catalog: fake}), "GET", tablePath+"/credentials"+want, "")
	if got := spelled(fake.through); got != spelled(views) {
		t.Errorf("read back as %s", got)
	}
	fake.access.Through = views
	w := send(NewServer(TestConfig{Catalog: fake}), "GET", tablePath+"/credentials"+want, "")
	if !strings.Contains(w.Body.String(), `/credentials`+strings.ReplaceAll(want, "&", `\u0026`)+`"`) {
		t.Errorf("answered %s", w.Body)
	}
}

// FuzzReferencedBy reads queries. Each is either refused with 400, or names valid views. A query
// made from these views must name the same views again, even if its whole value is encoded once
// more.
func FuzzReferencedBy(f *testing.F) {
	read := func(query string) ([]moorage.Identifier, error) {
		return referencedBy(&http.Request{URL: &url.URL{RawQuery: query}}, "lake")
	}
	f.Fuzz(func(t *testing.T, value string) {
		views, err := read(paramReferencedBy + "=" + value)
		if err != nil {
			if moorage.KindOf(err) != moorage.KindBadRequest {
				t.Errorf("%v, want KindBadRequest", err)
			}
			return
		}
		for _, view := range views {
			if err := errors.Join(view.Namespace.Validate(), moorage.ValidateName("name", view.Name)); err != nil || view.Warehouse != "lake" {
				t.Errorf("it names %q, %v", view, err)
			}
		}
		told := strings.TrimPrefix(queryOfViews(views), "?")
		name, again, _ := strings.Cut(told, "=")
		for _, query := range []string{told, name + "=" + url.QueryEscape(again)} {
			if got, err := read(query); err != nil || !slices.EqualFunc(got, views, moorage.Identifier.Equal) {
				t.Errorf("%s is read back as %q, %v; want %q", query, got, err, views)
			}
		}
	})
}
