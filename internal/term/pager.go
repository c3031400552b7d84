package term

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"
)

// Paged calls print with an output. If the text does not fit the terminal, Paged shows it in the
// user's pager. The pager is $MOORAGE_PAGER, or else $PAGER, or else "less -FRX"; an empty variable
// means no pager. If there is no terminal, or the pager does not start, the text is printed as it
// is.
func (o *Output) Paged(environ []string, print func(*Output) error) error {
	file, ok := o.Writer.(*os.File)
	if !ok || !o.IsTerminal {
		return print(o)
	}
	var text bytes.Buffer
	buffered := *o
	buffered.Writer = &text
	if err := print(&buffered); err != nil {
		return err
	}
	_, height, err := term.GetSize(int(file.Fd()))
	if err == nil && bytes.Count(text.Bytes(), []byte("\n")) >= height {
		if words := pagerOf(environ); len(words) > 0 {
			pager := exec.Command(words[0], words[1:]...)
			pager.Stdin, pager.Stdout, pager.Stderr = bytes.NewReader(text.Bytes()), file, os.Stderr
			if err := pager.Start(); err == nil {
				_ = pager.Wait() // it is not an error if the user quits early
				return nil
			}
		}
	}
	_, err = io.Copy(o.Writer, &text)
	return err
}

// pagerOf returns the command line of the pager as words. It returns nil if there is no pager.
func pagerOf(environ []string) []string {
	values := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	for _, name := range []string{"MOORAGE_PAGER", "PAGER"} {
		if value, set := values[name]; set {
			return strings.Fields(value)
		}
	}
	return []string{"less", "-FRX"}
}
