package archtest

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// messagesPage explains each warning and error of the log.
const messagesPage = "docs/guide/troubleshoot.md"

// slogMethods has the methods of *slog.Logger that can write a warning or an error, with the index
// of the argument that is the message. The last two methods take a level before the message.
var slogMethods = map[string]int{
	"Warn": 0, "Error": 0, "WarnContext": 1, "ErrorContext": 1, "Log": 2, "LogAttrs": 2,
}

// checkMessages finds warnings and errors of the log that are missing on the page. It also finds
// messages that readers cannot look up, because the text is computed at run time.
func checkMessages(m *module) (found []violation) {
	page, err := os.ReadFile(filepath.Join("..", "..", messagesPage))
	if err != nil {
		return []violation{{rule: "log message", at: messagesPage, text: err.Error()}}
	}
	named := quoted(string(page))
	m.served(func(f *file, info *types.Info) {
		ast.Inspect(f.ast, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			argument := messageOf(call, info)
			if argument == nil {
				return true
			}
			at := m.fset.Position(call.Pos())
			value := info.Types[argument].Value
			if value == nil || value.Kind() != constant.String {
				found = append(found, violation{rule: "log message", at: f.path, line: at.Line,
					text: "the message is no constant, so no page can explain it; put what changes into attributes"})
				return true
			}
			if text := constant.StringVal(value); !isNamed(text, named) {
				found = append(found, violation{rule: "log message", at: f.path, line: at.Line, text: fmt.Sprintf(
					"%s does not explain the log message %q. Add a paragraph to its section «What the log says»: "+
						"**`%s`**: what happened, then what the operator can do. A long message may be cut at a ; : or ,",
					messagesPage, text, text)})
			}
			return true
		})
	})
	return found
}

// messageOf returns the message of a call that writes a warning or an error to a log. It returns
// nil for other calls.
func messageOf(call *ast.CallExpr, info *types.Info) ast.Expr {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	index, ok := slogMethods[selector.Sel.Name]
	if !ok || len(call.Args) <= index {
		return nil
	}
	receiver := info.Types[selector.X].Type
	if receiver == nil || receiver.String() != "*log/slog.Logger" {
		return nil
	}
	if index == 2 && !mayWarn(info.Types[call.Args[1]].Value) {
		return nil
	}
	return call.Args[index]
}

// mayWarn reports whether a level is, or may be, that of a warning or worse.
func mayWarn(level constant.Value) bool {
	const warn = 4 // slog.LevelWarn
	if level == nil {
		return true
	}
	number, exact := constant.Int64Val(level)
	return !exact || number >= warn
}

// quoted returns the texts between backticks on a page, without line breaks.
func quoted(page string) []string {
	var texts []string
	for i, part := range strings.Split(page, "`") {
		if i%2 == 1 {
			texts = append(texts, strings.Join(strings.Fields(part), " "))
		}
	}
	return texts
}

// isNamed reports whether one of the texts in named equals the message, or its beginning up to a
// punctuation mark.
func isNamed(message string, named []string) bool {
	message = strings.Join(strings.Fields(message), " ")
	return slices.ContainsFunc(named, func(text string) bool {
		rest, ok := strings.CutPrefix(message, text)
		return ok && len(text) > 0 && (rest == "" || strings.ContainsAny(rest[:1], ";:,") || strings.HasPrefix(rest, " ("))
	})
}

// TestIsNamed tests which texts of a page refer to a message.
func TestIsNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		message, page string
		want          bool
	}{
		{"run failed", "**`run failed`**: mend it", true},
		{"run failed", "run failed", false},
		{"run failed; it goes on", "`run failed`", true},
		{"run failed again", "`run failed`", false},
		{"run failed", "`run\nfailed`", true},
		{"run failed", "`run`", false},
	} {
		if got := isNamed(tt.message, quoted(tt.page)); got != tt.want {
			t.Errorf("%q in %q: %v, want %v", tt.message, tt.page, got, tt.want)
		}
	}
}
