package management

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
)

// fakeProtections records its calls. The namespace sales protects its contents.
type fakeProtections struct{ *fake }

func (f fakeProtections) Load(_ context.Context, kind access.Kind, ident moorage.Identifier) (catalog.Protection, error) {
	by := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"sales"}}
	return catalog.Protection{By: &by}, f.call(fmt.Sprint("Load ", kind, " ", ident))
}

func (f fakeProtections) Set(_ context.Context, kind access.Kind, ident moorage.Identifier, protected bool) (catalog.Protection, error) {
	return catalog.Protection{Protected: protected}, f.call(fmt.Sprint("Set ", kind, " ", ident, " ", protected))
}

// The operations on protection call the catalog with the values in the request.
func TestProtectionOperations(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method, query, body string
		status              int
		call, answer        string
	}{
		"load":          {"GET", "?warehouse=w&namespace=sales&table=t", "", 200, "Load table sales.t", `{"protected":false,"protected-by":{"warehouse":"w","namespace":["sales"]}}`},
		"protect":       {"PUT", "?warehouse=w&namespace=sales", `{"protected":true}`, 200, "Set namespace sales. true", `{"protected":true}`},
		"a warehouse":   {"PUT", "?warehouse=w", `{"protected":false}`, 200, "Set warehouse", `{"protected":false}`},
		"a view":        {"PUT", "?warehouse=w&namespace=a&view=v", `{"protected":true}`, 200, "Set view a.v true", ""},
		"the server":    {"PUT", "?object=server", `{"protected":true}`, 400, "", "can be protected: name one"},
		"a function":    {"PUT", "?warehouse=w&namespace=a&function=f", `{"protected":true}`, 400, "", "can be protected: name one"},
		"without a say": {"PUT", "?warehouse=w", `{}`, 400, "", `member \"protected\" is missing`},
	} {
		f := &fake{}
		w := send(newServer(t, configOf(f)), tt.method, base+"/protection"+tt.query, tt.body)
		calls := strings.Join(f.calls, "; ")
		if w.Code != tt.status || !strings.Contains(calls, tt.call) || tt.call == "" && calls != "" || !strings.Contains(w.Body.String(), tt.answer) {
			t.Errorf("%s: %d %s, called %q", name, w.Code, w.Body, calls)
		}
	}
}
