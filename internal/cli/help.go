package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpColumns is the width to which help texts are wrapped.
const helpColumns = 100

// helpGroup is a group of commands in the overview.
type helpGroup struct {
	title string
	rows  [][]helpEntry
}

// helpEntry is one entry in a row of the overview: the first words of commands, and their effect.
type helpEntry struct{ words, effect string }

// overview returns the groups of commands that moorage help prints on one screen. overviewRow
// formats a row with two entries in columns.
func overview() []helpGroup {
	row := func(entries ...helpEntry) []helpEntry { return entries }
	return []helpGroup{
		{"Begin", [][]helpEntry{
			row(helpEntry{"demo", "a catalog with sample tables, here and now"}),
			row(helpEntry{"serve", "run the catalog"}),
			row(helpEntry{"connect", "what to type in Spark, Trino, DuckDB, PyIceberg, ..."}),
		}},
		{"Look", [][]helpEntry{
			row(helpEntry{"ls, tree", "what there is"}, helpEntry{"find", "search all names"}),
			row(helpEntry{"show, rows", "one table or view"}, helpEntry{"health", "is it in good shape?"}),
			row(helpEntry{"history", "who changed it"}, helpEntry{"diff", "two versions of it"}),
			row(helpEntry{"changes", "everything, live"}, helpEntry{"top", "the server at work"}),
		}},
		{"Change", [][]helpEntry{
			row(helpEntry{"mk, mv, rm", "make, rename, drop"}, helpEntry{"register", "a table from a file"}),
			row(helpEntry{"set, unset", "properties"}, helpEntry{"tag, branch", "names of snapshots"}),
			row(helpEntry{"label", "shown by engines"}, helpEntry{"protect", "refuse drops"}),
		}},
		{"Undo", [][]helpEntry{
			row(helpEntry{"undrop", "bring back a drop"}, helpEntry{"rollback", "an earlier version"}),
		}},
		{"Move", [][]helpEntry{
			row(helpEntry{"import", "bring a catalog in"}, helpEntry{"export", "take a catalog out"}),
			row(helpEntry{"plan", "compare with files"}, helpEntry{"apply", "change to match"}),
		}},
		{"Access", [][]helpEntry{
			row(helpEntry{words: "grant, revoke, grants, owner, explain, access, key, role"}),
		}},
		{"Operate", [][]helpEntry{
			row(helpEntry{"doctor", "what is wrong, and what to do"}),
			row(helpEntry{words: "warehouse, maintain, lease, backup, migrate, secrets, healthcheck"}),
		}},
		{"Tools", [][]helpEntry{row(helpEntry{words: "api, profile, completion, version"})}},
	}
}

// overviewRow formats a row of the overview, with the group's title in front.
func overviewRow(title string, row []helpEntry) string {
	line := fmt.Sprintf("%-9s", title)
	for i, entry := range row {
		switch {
		case entry.effect == "":
			line += entry.words
		case i < len(row)-1:
			line += fmt.Sprintf("%-12s%-23s", entry.words, entry.effect)
		default:
			line += fmt.Sprintf("%-12s%s", entry.words, entry.effect)
		}
	}
	return line
}

// writeHelp writes the overview of all commands, or the help of one command. If cmd is the first
// word of several commands, it writes their help too.
func writeHelp(out io.Writer, cmd *cobra.Command) {
	if !cmd.HasParent() {
		fmt.Fprint(out, "moorage: an Apache Iceberg catalog        moorage COMMAND --help says more\n\n")
		for _, group := range overview() {
			title := group.title
			for _, row := range group.rows {
				fmt.Fprintln(out, overviewRow(title, row))
				title = ""
			}
		}
		fmt.Fprint(out, "\nExit codes: 0 done, 1 failed, 2 usage, 3 the answer is no, 4 conflict,\n"+
			"5 the outcome is unknown\n")
		return
	}
	if cmd.Long != "" {
		fmt.Fprintf(out, "Usage: %s\n\n%s", cmd.UseLine(), cmd.Long)
		if cmd.HasAvailableFlags() {
			fmt.Fprintf(out, "\nFlags:\n%s", cmd.Flags().FlagUsagesWrapped(helpColumns))
		}
	}
	if !cmd.HasSubCommands() {
		return
	}
	if cmd.Long != "" {
		fmt.Fprint(out, "\nMore commands:\n")
	} else {
		fmt.Fprintf(out, "Usage: %s COMMAND [flags]\n\n", cmd.CommandPath())
	}
	for _, c := range commands() {
		if strings.HasPrefix("moorage "+c.name, cmd.CommandPath()+" ") {
			fmt.Fprintf(out, "  %-20s %s\n", c.name, c.summary)
		}
	}
	if cmd.Long == "" {
		fmt.Fprintf(out, "\n%s COMMAND --help says more about each.\n", cmd.CommandPath())
	}
}

// flagValue is the name of a flag's value in help. It does not keep the value: load reads the
// values.
type flagValue string

// String implements pflag.Value.
func (flagValue) String() string { return "" }

// Set implements pflag.Value.
func (flagValue) Set(string) error { return nil }

// Type implements pflag.Value.
func (v flagValue) Type() string { return string(v) }

// describe returns the help text of the setting.
func (s setting) describe() string {
	text := s.usage
	if s.required {
		text += " Required."
	}
	if s.preset != "" {
		text += " Default " + s.preset + "."
	}
	if !s.flagOnly {
		text += " Environment " + s.variable()
		if s.list {
			text += ", several values separated by spaces"
		}
		if len(s.unless) > 0 {
			text += ", unless --" + strings.Join(s.unless, " or --") + " is given"
		}
		text += "."
	}
	return text
}

// addTo adds the setting to cmd as a flag, for help and completion.
func (s setting) addTo(cmd *cobra.Command, completing bool) {
	flag := &pflag.Flag{Name: s.name, Shorthand: s.short, Value: flagValue(s.value), Usage: s.describe()}
	if s.value == "" {
		flag.Value, flag.NoOptDefVal = flagValue("bool"), "true"
	}
	if completing {
		flag.Value = &keptValue{flagValue: flag.Value.(flagValue)}
	}
	cmd.Flags().AddFlag(flag)
	if !completing {
		return // cobra keeps completions until the process ends
	}
	switch s.value {
	case "DIR":
		_ = cmd.MarkFlagDirname(s.name) // fails only for a flag that does not exist
	case "FILE":
	default:
		offer := cobra.FixedCompletions(choices(s.value), cobra.ShellCompDirectiveNoFileComp)
		_ = cmd.RegisterFlagCompletionFunc(s.name, offer)
	}
}

// choices returns the literal words in value: text and json for "text|json", all for "ID|all".
func choices(value string) (words []string) {
	for word := range strings.SplitSeq(value, "|") {
		if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz-") == "" {
			words = append(words, word)
		}
	}
	return words
}

// complete writes the script that makes a shell complete command lines.
func complete(_ context.Context, c Config, env Environment) error {
	root := newRoot(env, nil, true)
	switch c.Operand {
	case "bash":
		err := root.GenBashCompletionV2(env.Stdout, true)
		fmt.Fprint(env.Stdout, bashAlone)
		return err
	case "zsh":
		return root.GenZshCompletion(env.Stdout)
	case "fish":
		return root.GenFishCompletion(env.Stdout, true)
	}
	return root.GenPowerShellCompletionWithDesc(env.Stdout)
}

// bashAlone lets cobra's script work without the package bash-completion. The functions of
// bash-completion handle quotes; these replacements only split the line at spaces.
const bashAlone = `
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    __moorage_init_completion() {
        local line="${COMP_LINE:0:COMP_POINT}"
        COMPREPLY=()
        read -r -a words <<<"$line"
        case "$line" in *[[:space:]]) words+=("") ;; esac
        cword=$((${#words[@]} - 1))
        cur="${words[cword]}"
        prev=""
        if ((cword > 0)); then prev="${words[cword-1]}"; fi
    }
fi
if ! declare -F __ltrim_colon_completions >/dev/null 2>&1; then
    __ltrim_colon_completions() {
        local known i
        case "$1" in *:*) known="${1%"${1##*:}"}" ;; *) return ;; esac
        for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]="${COMPREPLY[i]#"$known"}"; done
    }
fi
`
