package moorage_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"moorage"
)

// TestWordsOfKindsStay checks the words for each kind that are stored in records. They never
// change.
func TestWordsOfKindsStay(t *testing.T) {
	t.Parallel()
	const words = "internal,bad request,illegal argument,validation,not authorized,forbidden,no such warehouse," +
		"no such namespace,no such table,no such view,not found,unsupported,already exists,namespace not empty," +
		"commit failed,unprocessable,too large,too many requests,unavailable,commit state unknown,precondition failed,gone," +
		"not shown"
	var got []string
	for _, kind := range moorage.Kinds() {
		text, err := kind.MarshalText()
		var back moorage.Kind
		if err != nil || back.UnmarshalText(text) != nil || back != kind {
			t.Errorf("%s is read as %v, %v", text, back, err)
		}
		got = append(got, string(text))
	}
	if strings.Join(got, ",") != words {
		t.Errorf("the kinds are %q", got)
	}
	var kind moorage.Kind
	if err := kind.UnmarshalText([]byte("no such kind")); err == nil {
		t.Error("an unknown kind is read")
	}
}

// TestFinalKinds: a refusal that no retry can change is final, and a fault of the server is not.
func TestFinalKinds(t *testing.T) {
	t.Parallel()
	passing := []moorage.Kind{moorage.KindInternal, moorage.KindNotAuthorized, moorage.KindForbidden,
		moorage.KindTooManyRequests, moorage.KindUnavailable, moorage.KindCommitUnknown}
	for _, kind := range moorage.Kinds() {
		want := true
		for _, other := range passing {
			want = want && kind != other
		}
		if kind.Final() != want {
			t.Errorf("%v is final: %t", kind, kind.Final())
		}
	}
	if unknown := moorage.Kind(200); unknown.Final() || unknown.String() != "kind 200" {
		t.Errorf("an unknown kind: %v, final %t", unknown, unknown.Final())
	}
}

// TestErrorsKeepTheirCause adds operations and kinds to an error. Clients see the message of the
// layer that has one, logs get everything, and the cause can be unwrapped.
func TestErrorsKeepTheirCause(t *testing.T) {
	t.Parallel()
	told := moorage.Errorf(moorage.KindNoSuchTable, "No such table: %w", io.EOF)
	err := moorage.Annotate("catalog.Load", "ns.t", fmt.Errorf("load: %w", told))
	if moorage.KindOf(err) != moorage.KindNoSuchTable || moorage.MessageOf(err) != "No such table: EOF" || !errors.Is(err, io.EOF) {
		t.Errorf("%v is %v with the message %q", err, moorage.KindOf(err), moorage.MessageOf(err))
	}
	if want := "catalog.Load: ns.t: load: No such table: EOF"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	raised := moorage.E("catalog.Commit", "", moorage.KindUnavailable, io.EOF)
	if moorage.KindOf(raised) != moorage.KindUnavailable || moorage.MessageOf(raised) != "" {
		t.Errorf("a cause of a lower layer: %v with the message %q", moorage.KindOf(raised), moorage.MessageOf(raised))
	}
	if moorage.E("op", "ident", moorage.KindInternal, nil) != nil || moorage.KindOf(io.EOF) != moorage.KindInternal {
		t.Error("no error has an operation, or a foreign error has a kind")
	}
	hidden := moorage.E("op", "", moorage.KindNoSuchTable, &moorage.Error{Kind: moorage.KindNoSuchTable, Hidden: true})
	if !moorage.IsHidden(hidden) || moorage.IsHidden(err) || moorage.IsHidden(nil) {
		t.Error("what is hidden is not told apart")
	}
}

// TestTextsForReaders checks that texts are short, valid, and safe to copy into a shell.
func TestTextsForReaders(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		moorage.OneLine("a"):               "a",
		moorage.OneLine("a\nb\nc"):         "a; b; c",
		moorage.OneLine("a\nb\nc\nd\ne"):   "a; b; c; and 2 more",
		moorage.ShellWord("sales.orders"):  "sales.orders",
		moorage.ShellWord(""):              "''",
		moorage.ShellWord("a b"):           "'a b'",
		moorage.ShellWord("it's; rm -r /"): `'it'\''s; rm -r /'`,
		moorage.Counted(1, "table"):        "1 table",
		moorage.Counted(0, "table"):        "0 tables",
		moorage.SizeOf(999):                "999 bytes",
		moorage.SizeOf(1_400_000_000):      "1.4 GB",
		moorage.SizeOf(999_960):            "1.0 MB",
		moorage.SizeOf(1<<64 - 1):          "18.4 EB",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for length := range 8 {
		if cut := moorage.Cut("aéé\xffz", length); len(cut) > length || !utf8.ValidString(cut) {
			t.Errorf("cut to %d bytes: %q", length, cut)
		}
	}
}
