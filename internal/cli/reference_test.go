package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the pages in docs/reference")

// TestSettingsReference holds the page of settings against the settings.
func TestSettingsReference(t *testing.T) {
	t.Parallel()
	wantPage(t, "../../docs/reference/settings.md", settingsReference())
}

// TestCommandsReference holds the page of commands against what each command says about itself.
func TestCommandsReference(t *testing.T) {
	t.Parallel()
	wantPage(t, "../../docs/reference/commands.md", commandsReference(t))
}

// wantPage compares a page with what it should be. -update rewrites the page.
func wantPage(t *testing.T, name, page string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Errorf("%s is stale (rewrite it with -update); want\n%s", name, page)
	}
}

// commandsReference returns the page: the overview, then the help of each command.
func commandsReference(t *testing.T) string {
	t.Helper()
	var page strings.Builder
	page.WriteString("# Commands\n\n<!-- Generated: go test ./internal/cli -run Reference -update -->\n\n" +
		"This is what `moorage help` and `moorage COMMAND --help` print. [Settings](settings.md) has the flags one by one.\n" +
		"Exit codes: 0 done; 1 it went wrong, as one sentence on stderr says; 2 the command line, the environment or the\n" +
		"configuration file is wrong, with a line for each fault.\n")
	write := func(heading string, words ...string) {
		got := runToEnd(t, append(words, "--help")...)
		if got.code != ExitDone || got.stderr != "" {
			t.Errorf("%q --help: exit %d, stderr %q", words, got.code, got.stderr)
		}
		fmt.Fprintf(&page, "\n## %s\n\n```\n%s```\n", heading, got.stdout)
	}
	write("moorage help")
	for _, cmd := range commands(Actions{}) {
		write("moorage "+cmd.name, strings.Fields(cmd.name)...)
	}
	return page.String()
}

// settingsReference returns the page: the settings of the server, then those of other commands.
func settingsReference() string {
	var page strings.Builder
	page.WriteString("# Settings\n\n<!-- Generated: go test ./internal/cli -run Reference -update -->\n\n" +
		"Each setting of `moorage serve` is a flag, an environment variable, and a key of the YAML file that `--config`\n" +
		"names; there the name stands without dashes. [Configure](../guide/configure.md) says which one wins.\n\n## moorage serve\n")
	all := make(map[string]bool)
	for _, s := range serverSettings() {
		all[s.name] = true
		writeSetting(&page, s)
	}
	for _, cmd := range commands(Actions{}) {
		var own []setting
		for _, s := range cmd.settings {
			if !all[s.name] || s.flagOnly {
				own = append(own, s)
			}
		}
		if len(own) == 0 || cmd.name == "serve" {
			continue
		}
		fmt.Fprintf(&page, "\n## moorage %s\n\nBesides those of the server that `--help` lists.\n", cmd.name)
		for _, s := range own {
			writeSetting(&page, s)
		}
	}
	return page.String()
}

func writeSetting(page *strings.Builder, s setting) {
	fmt.Fprintf(page, "\n### `%s`\n\n", strings.TrimRight("--"+s.name+" "+s.value, " "))
	wrapDocument(page, s.usage)
	var notes []string
	if s.required {
		notes = append(notes, "Required.")
	}
	if s.preset != "" {
		notes = append(notes, "Default: `"+s.preset+"`.")
	}
	if !s.flagOnly {
		notes = append(notes, "Environment: `"+s.variable()+"`.")
	}
	if s.list && !s.flagOnly {
		notes = append(notes, "In the environment several stand with spaces between.")
	}
	if len(notes) > 0 {
		page.WriteString("\n")
		wrapDocument(page, strings.Join(notes, " "))
	}
}

// wrapDocument writes text as one paragraph of lines of at most 120 columns.
func wrapDocument(page *strings.Builder, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > 120 {
			fmt.Fprintln(page, line)
			line = ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	fmt.Fprintln(page, line)
}
