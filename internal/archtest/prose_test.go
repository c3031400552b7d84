package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// Limits for prose. A tab counts as tabColumns columns.
const (
	tabColumns        = 4
	commentColumnsMax = 100
	// codeColumnsMax is the maximum width of lines of code outside tests, including a comment at
	// the end.
	codeColumnsMax = 120
	// sentenceWordsMax is the limit of the test; a writer aims at 25 words.
	sentenceWordsMax = 40
)

// crooked matches phrases that make a reader stumble.
var crooked = regexp.MustCompile(
	`(?i)\b(tells? whether|whoever|anew|be it|but for|amid|all the same|untold|of which)\b`)

// TestDocumentsArePlain looks for crooked words in the documents.
func TestDocumentsArePlain(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	for name, text := range documents(t, m) {
		for i, line := range strings.Split(text, "\n") {
			for _, word := range crooked.FindAllString(line, -1) {
				t.Errorf("%s:%d: says %q", name, i+1, word)
			}
		}
	}
}

// checkProse finds comments and texts that are hard to read.
func checkProse(m *module) (found []violation) {
	for _, f := range m.files() {
		found = append(found, proseFaults(m, f)...)
	}
	return found
}

// proseFaults returns what is wrong with the comments, string literals and widths of f.
func proseFaults(m *module, f *file) []violation {
	if ast.IsGenerated(f.ast) {
		return nil
	}
	found := checkWidths(f)
	for _, group := range f.ast.Comments {
		for _, sentence := range sentences(commentLines(group)) {
			for _, word := range crooked.FindAllString(sentence, -1) {
				found = append(found, m.at("prose", f, group, "says %q", word))
			}
			if n := wordCount(sentence); n > sentenceWordsMax {
				found = append(found, m.at("prose", f, group, "%d words in a sentence, at most %d are allowed: %s",
					n, sentenceWordsMax, sentence))
			}
		}
	}
	if f.test {
		return found
	}
	ast.Inspect(f.ast, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				return true
			}
			for _, word := range crooked.FindAllString(strings.Join(strings.Fields(text), " "), -1) {
				found = append(found, m.at("prose", f, literal, "says %q", word))
			}
		}
		return true
	})
	return found
}

// checkWidths finds the lines of f that are too wide. A line with one word that cannot be split,
// such as an address, may be too wide. In tests, only comments have a limit.
func checkWidths(f *file) (found []violation) {
	for i, line := range strings.Split(f.text, "\n") {
		trimmed := strings.TrimLeft(line, "\t")
		columns := len([]rune(trimmed)) + tabColumns*(len(line)-len(trimmed))
		bound := codeColumnsMax
		if strings.HasPrefix(trimmed, "//") && !strings.HasPrefix(trimmed, "//go:") {
			bound = commentColumnsMax
			if len(strings.Fields(trimmed)) <= 2 {
				continue
			}
		} else if f.test {
			continue
		}
		if columns > bound {
			found = append(found, violation{rule: "prose", at: f.path, line: i + 1,
				text: fmt.Sprintf("%d columns, at most %d are allowed", columns, bound)})
		}
	}
	return found
}

// commentLines returns the lines of a comment without the marks around them. Text after "//" keeps
// the space with which most lines begin.
func commentLines(group *ast.CommentGroup) (lines []string) {
	for _, comment := range group.List {
		if text, ok := strings.CutPrefix(comment.Text, "//"); ok {
			lines = append(lines, text)
			continue
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(strings.TrimPrefix(comment.Text, "/*"), "*/"), "\n")...)
	}
	return lines
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]["')]*\s+`)
	listItem    = regexp.MustCompile(`^\s*([-*•]|[0-9]+[.)])\s`)
)

// sentences returns the sentences of a comment. A sentence also ends at a blank line, a heading, a
// list item, and preformatted text (after a tab).
func sentences(lines []string) (all []string) {
	var paragraph []string
	end := func() {
		text := strings.Join(strings.Fields(strings.Join(paragraph, " ")), " ")
		for _, sentence := range sentenceEnd.Split(text, -1) {
			if sentence != "" {
				all = append(all, sentence)
			}
		}
		paragraph = nil
	}
	for _, line := range lines {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "" || strings.HasPrefix(line, "go:"):
			end()
		case strings.HasPrefix(line, "\t"):
			end()
			all = append(all, trimmed)
		case listItem.MatchString(line):
			end()
			paragraph = append(paragraph, trimmed)
		default:
			paragraph = append(paragraph, trimmed)
		}
	}
	end()
	return all
}

// wordCount counts the fields of a sentence that contain a letter or a digit.
func wordCount(sentence string) (n int) {
	for _, field := range strings.Fields(sentence) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}
