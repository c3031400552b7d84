package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpColumns is the width that help texts are wrapped to.
const helpColumns = 100

// writeHelp writes the help of one command, or the list of commands in a group.
func writeHelp(out io.Writer, cmd *cobra.Command) {
	if !cmd.HasSubCommands() {
		fmt.Fprintf(out, "Usage: %s\n\n%s", cmd.UseLine(), cmd.Long)
		if cmd.HasAvailableFlags() {
			fmt.Fprintf(out, "\nFlags:\n%s", cmd.Flags().FlagUsagesWrapped(helpColumns))
		}
		return
	}
	fmt.Fprint(out, "Moorage is an Apache Iceberg REST catalog.\n\nUsage: moorage COMMAND [flags]\n\n")
	for _, c := range commands(Actions{}) {
		if strings.HasPrefix("moorage "+c.name, cmd.CommandPath()+" ") {
			fmt.Fprintf(out, "  %-17s %s\n", c.name, c.summary)
		}
	}
	fmt.Fprint(out, "\nmoorage COMMAND --help says more about each.\n")
}

// flagValue is the name that help gives to the value of a flag. It keeps no value: load does.
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
			text += ", several with spaces between"
		}
		if len(s.unless) > 0 {
			text += ", unless there is a flag --" + strings.Join(s.unless, " or --")
		}
		text += "."
	}
	return text
}

// addTo declares the setting as a flag of cmd, for help and completion.
func (s setting) addTo(cmd *cobra.Command, completing bool) {
	flag := &pflag.Flag{Name: s.name, Value: flagValue(s.value), Usage: s.describe()}
	if s.value == "" {
		flag.Value, flag.NoOptDefVal = flagValue("bool"), "true"
	}
	cmd.Flags().AddFlag(flag)
	if !completing {
		return // cobra keeps completions until the process ends
	}
	switch s.value {
	case "DIR":
		_ = cmd.MarkFlagDirname(s.name) // it fails only for flags that do not exist
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
	root := newRoot(env, Actions{}, true)
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

// writeManual writes one manual page for all commands. Package doc of cobra would need two
// converters from Markdown for it.
func writeManual(_ context.Context, _ Config, env Environment) error {
	roff := strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'", "\n\n", "\n.PP\n")
	fmt.Fprint(env.Stdout, ".TH MOORAGE 1\n.SH NAME\nmoorage \\- an Apache Iceberg REST catalog\n"+
		".SH SYNOPSIS\n.B moorage\nCOMMAND [flags]\n.SH COMMANDS\n")
	for _, c := range commands(Actions{}) {
		fmt.Fprintf(env.Stdout, ".SS %s %s\n%s", c.name, c.operand, roff.Replace(c.text))
		for _, s := range c.settings {
			flag := roff.Replace("--" + s.name + " " + s.value)
			fmt.Fprintf(env.Stdout, ".TP\n.B %s\n%s\n", flag, roff.Replace(s.describe()))
		}
	}
	_, err := fmt.Fprint(env.Stdout, ".SH EXIT STATUS\n0: done. 1: it went wrong, as stderr says. "+
		"2: the command line, the environment or the configuration file is wrong.\n")
	return err
}

// bashAlone makes the script of cobra work without the package bash-completion. The package's
// functions handle quotes; these replacements split the line at spaces.
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
