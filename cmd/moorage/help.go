package main

import (
	"fmt"
	"io"
	"strings"
)

// helpColumns is the width that help texts are wrapped to.
const helpColumns = 88

// writeOverview lists the commands.
func writeOverview(out io.Writer, all []command) {
	fmt.Fprint(out, "Moorage is an Apache Iceberg REST catalog.\n\nUsage: moorage COMMAND [flags]\n\n")
	for _, cmd := range all {
		fmt.Fprintf(out, "  %-17s %s\n", cmd.name, cmd.summary)
	}
	fmt.Fprint(out, "\nmoorage COMMAND --help says more about each.\n")
}

// writeHelp says everything about one command.
func writeHelp(out io.Writer, cmd command) {
	usage := "moorage " + cmd.name
	if cmd.operand != "" {
		usage += " " + cmd.operand
	}
	if len(cmd.settings) > 0 {
		usage += " [flags]"
	}
	fmt.Fprintf(out, "Usage: %s\n\n", usage)
	wrap(out, "", cmd.text)
	for _, s := range cmd.settings {
		fmt.Fprintf(out, "\n  --%s", s.name)
		if s.value != "" {
			fmt.Fprintf(out, " %s", s.value)
		}
		fmt.Fprintln(out)
		wrap(out, "        ", s.usage)
		var notes []string
		if s.required {
			notes = append(notes, "Required.")
		}
		if s.preset != "" {
			notes = append(notes, "Default "+s.preset+".")
		}
		if !s.flagOnly {
			notes = append(notes, "Environment "+s.variable()+".")
			if s.list {
				notes = append(notes, "There several stand with spaces between.")
			}
		}
		wrap(out, "        ", strings.Join(notes, " "))
	}
}

// wrap writes text, each line after indent and at most helpColumns wide where words allow it. Lines that
// start with a space are kept as they are.
func wrap(out io.Writer, indent, text string) {
	for paragraph := range strings.Lines(text) {
		paragraph = strings.TrimSuffix(paragraph, "\n")
		if paragraph == "" || strings.HasPrefix(paragraph, " ") {
			fmt.Fprintln(out, paragraph)
			continue
		}
		line := indent
		for _, word := range strings.Fields(paragraph) {
			if len(line)+1+len(word) > helpColumns && line != indent {
				fmt.Fprintln(out, strings.TrimRight(line, " "))
				line = indent
			}
			line += word + " "
		}
		if line != indent {
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
	}
}
