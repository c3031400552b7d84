package archtest

import (
	"fmt"
	"go/ast"
)

// fileLinesMax is the maximum number of lines in a file.
const fileLinesMax = 800

// checkFileSize finds files that should be split.
func checkFileSize(m *module) (found []violation) {
	for _, f := range m.files() {
		if f.lines > fileLinesMax && !ast.IsGenerated(f.ast) {
			found = append(found, violation{rule: "file size", at: f.path,
				text: fmt.Sprintf("%d lines, at most %d are allowed", f.lines, fileLinesMax)})
		}
	}
	return found
}
