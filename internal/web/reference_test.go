package web

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"moorage"
)

// errorsPage is the page that TestErrorsReference compares with the table of kinds.
const errorsPage = "../../docs/reference/errors.md"

var update = flag.Bool("update", false, "rewrite generated pages")

// TestErrorsReference compares the page of errors with the table of kinds. With -update, it
// rewrites the page.
func TestErrorsReference(t *testing.T) {
	t.Parallel()
	page := errorsReference()
	if *update {
		if err := os.WriteFile(errorsPage, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Errorf("%s is not as the table of kinds is (rewrite it with -update); want\n%s", errorsPage, page)
	}
}

func errorsReference() string {
	var page strings.Builder
	page.WriteString("# Errors\n\n<!-- Generated: go test ./internal/web -run TestErrorsReference -update -->\n\n" +
		"Every failure is JSON: `{\"error\": {\"message\": …, \"type\": …, \"code\": …}}`. `code` is the status. Java clients\n" +
		"turn `type` into the exception of that name. Below `/management/v1` an error has `request-id` and `help` too. An\n" +
		"error of a [traced](../guide/monitor.md#traces) request has its `trace-id`.\n\n" +
		"| status | type | message, where the failure has none of its own | `Retry-After` |\n|---|---|---|---|\n")
	rows := []Failure{failureNoRoute, failureNoMethod, failureNoHost}
	advised := make(map[string]bool)
	for kind, answer := range failures {
		rows = append(rows, answer)
		advised[answer.Type] = kind == moorage.KindUnavailable || kind == moorage.KindTooManyRequests
	}
	slices.SortFunc(rows, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Type, b.Type))
	})
	for _, row := range rows {
		wait := "–"
		if advised[row.Type] {
			wait = retryAfter + " s"
		}
		fmt.Fprintf(&page, "| %d | `%s` | %s | %s |\n", row.Status, row.Type, row.Fallback, wait)
	}
	page.WriteString("\nA 503 or 429 with `Retry-After` means that nothing was changed and nothing will be: send the request again. A 500\n" +
		"`CommitStateUnknownException` means that the change may have happened: look before you send it again, or send it\n" +
		"with the same `Idempotency-Key`. [Divergences](../divergences.md) says where this departs from the specification.\n")
	return page.String()
}
