package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// settingsPage is the page that TestSettingsReference keeps as the settings are.
const settingsPage = "../../docs/reference/settings.md"

// TestSettingsReference holds the page of settings against the settings. -update rewrites the page.
func TestSettingsReference(t *testing.T) {
	t.Parallel()
	page := settingsReference()
	if *update {
		if err := os.WriteFile(settingsPage, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Errorf("%s is not as the settings are (rewrite it with -update); want\n%s", settingsPage, page)
	}
}

// settingsReference returns the page: the settings of the server, then those of other commands.
func settingsReference() string {
	var page strings.Builder
	page.WriteString("# Settings\n\n<!-- Generated: go test ./cmd/moorage -run TestSettingsReference -update -->\n\n" +
		"Each setting of `moorage serve` is a flag, an environment variable, and a key of the YAML file that `--config`\n" +
		"names; there the name stands without dashes. [Configure](../guide/configure.md) says which one wins.\n\n## moorage serve\n")
	all := make(map[string]bool)
	for _, s := range serverSettings() {
		all[s.name] = true
		writeSetting(&page, s)
	}
	for _, cmd := range commands() {
		var own []setting
		for _, s := range cmd.settings {
			if !all[s.name] || s.flagOnly {
				own = append(own, s)
			}
		}
		if len(own) == 0 || cmd.name == "serve" {
			continue
		}
		fmt.Fprintf(&page, "\n## moorage %s\n\nFlags only, beside those of the server that `--help` lists.\n", cmd.name)
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
